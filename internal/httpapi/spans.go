package httpapi

import (
	"fmt"
	"time"
)

// The bounds of the time that a query is about.
const (
	maxSpan       = 400 * 24 * time.Hour
	maxSplitHours = 62 * 24 * time.Hour // of answers with parts of each hour
)

// spanRead reports whether both ends of the time are valid so far, so that the time can be checked.
func spanRead(bad *fieldErrors) bool { return !bad.has("query.from") && !bad.has("query.until") }

// checkFrom wants a stretch of time to begin before it ends, and not to be too long.
func checkFrom(c *call, bad *fieldErrors, from, until time.Time) {
	given := c.r.URL.Query().Get("from")
	switch {
	case !spanRead(bad):
	case !from.Before(until):
		badParameter(bad, "from", "must be before until, "+stamp(until), given)
	case until.Sub(from) > maxSpan:
		badParameter(bad, "from", fmt.Sprintf("must be at most %d days before until, %s", int(maxSpan.Hours()/24), stamp(until)), given)
	}
}

// checkSpan wants a stretch of time that a picture may show.
func checkSpan(c *call, from, until time.Time, bad *fieldErrors) {
	given := c.r.URL.Query().Get("until")
	switch {
	case !spanRead(bad):
	case !until.After(from):
		badParameter(bad, "until", "must be after from, "+stamp(from), given)
	case until.Sub(from) > maxSpan:
		badParameter(bad, "until", fmt.Sprintf("must be at most %d days after from, %s", int(maxSpan.Hours()/24), stamp(from)), given)
	}
}

// wholeHours widens a time to whole hours, or says what is wrong with it.
func wholeHours(c *call, bad *fieldErrors, from, until time.Time) (time.Time, time.Time) {
	from, until = from.UTC().Truncate(time.Hour), until.UTC().Add(time.Hour-1).Truncate(time.Hour)
	checkFrom(c, bad, from, until)
	return from, until
}

// ceil counts the units of a time span, rounded up: a caller that waits for so long is not too early.
func ceil(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }
