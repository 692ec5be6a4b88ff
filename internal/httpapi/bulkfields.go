package httpapi

import (
	"regexp"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
)

// maxShift is the longest way that a bulk change moves pushes.
const maxShift = 8760 * time.Hour

// bulkForm is a bulk change as a caller asks for it.
type bulkForm struct {
	push.BulkChange
	filter pushFilter
	all    bool
	moved  bool // there is shift or send_at
}

// bulkFilter has the filters of the list of pushes that choose among scheduled ones.
var bulkFilter = table[pushFilter]{schemaName: "NewBulkFilter", fields: slices.DeleteFunc(slices.Clone(listParams.fields), func(f field[pushFilter]) bool {
	return f.name == "status" || f.name == "page_size" || f.name == "page_token"
})}

var bulkFields = table[bulkForm]{schemaName: "NewBulkChange", check: (*bulkForm).check, fields: []field[bulkForm]{
	row("action", required, oneOf(func(f *bulkForm, a push.BulkAction) { f.Action = a }, push.BulkCancel, push.BulkMove), "The action on the pushes.", "move"),
	row("filter", optional, object(&bulkFilter, func(f *bulkForm) *pushFilter { return &f.filter }),
		"Selects among the scheduled pushes. The members are the filters of the list of pushes, and a push must match all of them. Required, unless all is true.", nil),
	row("all", optional, boolean(func(f *bulkForm, v bool) { f.all = v }), "Selects all scheduled pushes. Must be true without a filter, and only then.", nil),
	row("shift", optional, shift(func(f *bulkForm, d time.Duration) { f.Shift, f.moved = d, true }),
		"The time span by which each push is sent later, or earlier with a minus sign: whole seconds, up to a year. For move, which needs either shift or send_at.", "1h30m"),
	row("send_at", optional, moment(func(f *bulkForm, t time.Time) { f.SendAt, f.moved = t, true }),
		"The new send time of all pushes, with a zone. A fraction of a second is rounded up. For move.", nil),
}}

const shiftShape = `^[+-]?([0-9]+([.][0-9]+)?d|([0-9]+([.][0-9]+)?d)?([0-9]+([.][0-9]+)?(ms|s|m|h))+)$`

// shift reads a time span that may be negative, and is none of nothing.
func shift[T any](set func(*T, time.Duration)) value[T] {
	shape := regexp.MustCompile(shiftShape)
	return scalar(set, huma.Schema{Type: huma.TypeString, Pattern: shiftShape}, func(text string) (time.Duration, string) {
		d, err := duration.Parse(text)
		if err != nil || !shape.MatchString(text) || d == 0 || d%time.Second != 0 || d.Abs() > maxShift {
			return 0, "must be a time span of whole seconds, up to " + duration.Words(maxShift) + " and not 0, written like 90s, 1h30m, 7d or -15m"
		}
		return d, ""
	})
}

// check finds what only the fields together can tell.
func (f *bulkForm) check(_ []byte, errs *fieldErrors) {
	f.Filter = f.filter.Filter
	empty := f.Filter == push.Filter{}
	unread := errs.has("filter")
	for _, field := range bulkFilter.fields {
		unread = unread || errs.has("filter."+field.name)
	}
	switch {
	case unread || errs.has("all"):
	case empty && !f.all:
		errs.add("filter", "must not be empty; to select all scheduled pushes, set all to true", nil)
	case !empty && f.all:
		errs.add("all", "must not be true together with a filter", nil)
	}
	if !f.Filter.From.IsZero() && !f.Filter.Until.IsZero() && !f.Filter.From.Before(f.Filter.Until) {
		errs.add("filter.until", "must be after from", stamp(f.Filter.Until))
	}
	given := errs.has("shift") || errs.has("send_at")
	switch {
	case f.Action == push.BulkCancel && f.Shift != 0:
		errs.add("shift", "is for the action move only", f.Shift.String())
	case f.Action == push.BulkCancel && !f.SendAt.IsZero():
		errs.add("send_at", "is for the action move only", stamp(f.SendAt))
	case f.Shift != 0 && !f.SendAt.IsZero():
		errs.add("send_at", "must be absent, because shift is given", stamp(f.SendAt))
	case f.Action == push.BulkMove && !f.moved && !given:
		errs.add("shift", "is required, or send_at instead", nil)
	}
}

// readBulk reads the body that makes a bulk change. wrong is what is wrong with it by now only: a request that is repeated after its
// time has passed is the same as before.
func (h *bulkChanges) readBulk(c *call, bad *fieldErrors) (p push.BulkChange, body []byte, wrong error, err error) {
	var (
		f     bulkForm
		found fieldErrors
		late  fieldErrors
	)
	if body, err = c.object(maxBody, bad, func(r *reader) { bulkFields.read(r, &f, &found) }); err != nil {
		return p, nil, nil, err
	}
	f.Tenant = c.caller.Tenant
	if up := f.SendAt.Truncate(time.Second); up.Before(f.SendAt) {
		f.SendAt = up.Add(time.Second)
	}
	if now := c.now(); !f.SendAt.IsZero() && !found.has("send_at") && f.SendAt.Before(now.Add(-time.Minute)) {
		late.list.Add("send_at", stamp(f.SendAt), "must not be more than a minute in the past; it is now %s", invalid.Now(now))
	}
	if len(bad.list)+len(found.list) > 0 {
		found.list = append(found.list, late.list...)
	}
	bad.addAll("body", found)
	var only fieldErrors
	only.addAll("body", late)
	return f.BulkChange, body, only.err(), bad.err()
}
