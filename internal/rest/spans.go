package rest

import (
	"fmt"
	"time"
)

// The bounds of the time that a query is about.
const (
	MaxSpan       = 400 * 24 * time.Hour
	MaxSplitHours = 62 * 24 * time.Hour // of answers with parts of each hour
)

// SpanRead reports whether both ends of the time are valid so far, so that the time can be checked.
func SpanRead(bad *FieldErrors) bool { return !bad.Has("query.from") && !bad.Has("query.until") }

// CheckFrom adds an error if a time span ends before it begins, or is too long. The error is at from.
func CheckFrom(c *Call, bad *FieldErrors, from, until time.Time) {
	given := c.Request.URL.Query().Get("from")
	switch {
	case !SpanRead(bad):
	case !from.Before(until):
		BadParameter(bad, "from", "must be before until, "+Stamp(until), given)
	case until.Sub(from) > MaxSpan:
		BadParameter(bad, "from", fmt.Sprintf("must be at most %d days before until, %s", int(MaxSpan.Hours()/24), Stamp(until)), given)
	}
}

// CheckSpan is [CheckFrom] with the error at until.
func CheckSpan(c *Call, from, until time.Time, bad *FieldErrors) {
	given := c.Request.URL.Query().Get("until")
	switch {
	case !SpanRead(bad):
	case !until.After(from):
		BadParameter(bad, "until", "must be after from, "+Stamp(from), given)
	case until.Sub(from) > MaxSpan:
		BadParameter(bad, "until", fmt.Sprintf("must be at most %d days after from, %s", int(MaxSpan.Hours()/24), Stamp(from)), given)
	}
}

// WholeHours widens a time span to whole hours, and checks it.
func WholeHours(c *Call, bad *FieldErrors, from, until time.Time) (time.Time, time.Time) {
	from, until = from.UTC().Truncate(time.Hour), until.UTC().Add(time.Hour-1).Truncate(time.Hour)
	CheckFrom(c, bad, from, until)
	return from, until
}
