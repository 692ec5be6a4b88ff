// Package zone computes with wall clock times: which instant a local time is, and where the hours, days, weeks and
// months of a zone, and the quiet hours of a day, begin. It follows the zone's real transitions: days have 23, 24 or 25
// hours, an hour may have 30 minutes, and a day may be missing.
//
// One rule decides about every local time: it is the first instant when the zone's clocks show it or a later one. So a
// time that is skipped in spring is the first instant after the gap, and a time that appears twice in autumn is the
// first of both.
//
//	Europe/Berlin, 2026-03-29    01:59:59 → 03:00:00     02:30 is 03:00, 01:00Z
//	Europe/Berlin, 2026-10-25    02:59:59 → 02:00:00     02:30 is 00:30Z, and never 01:30Z
//
// It knows no quota, and reads no clock.
package zone
