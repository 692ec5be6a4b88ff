// Package recurrence defines schedules and the outcomes of their occurrences, computes the occurrences of a cron
// expression in a zone, and selects which missed ones run. It reads no clock and stores nothing: package recurring runs
// schedules.
//
// The fields of an expression are wall clock times. A time that is skipped in spring occurs at the first instant after
// the gap; two that coincide there occur once. A time that appears twice in autumn occurs at the first of both
// instants, or with * for the hour at both.
package recurrence
