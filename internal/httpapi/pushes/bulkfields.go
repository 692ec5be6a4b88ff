package pushes

import (
	"regexp"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/bulkchange"
	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// maxShift is the largest shift of a bulk change.
const maxShift = 8760 * time.Hour

// bulkForm is a bulk change in a request.
type bulkForm struct {
	bulkchange.Change
	filter pushFilter
	all    bool
	moved  bool // shift or send_at is given
}

// bulkFilter has the filters of the list of pushes that apply to scheduled pushes.
var bulkFilter = rest.Table[pushFilter]{SchemaName: "NewBulkFilter", Fields: slices.DeleteFunc(slices.Clone(listParams.Fields), func(f rest.Field[pushFilter]) bool {
	return f.Name == "status" || f.Name == "reason" || f.Name == "page_size" || f.Name == "page_token"
})}

var bulkFields = rest.Table[bulkForm]{SchemaName: "NewBulkChange", Check: (*bulkForm).check, Fields: []rest.Field[bulkForm]{
	rest.Row("action", rest.Required, rest.OneOf(func(f *bulkForm, a bulkchange.Action) { f.Action = a }, bulkchange.Cancel, bulkchange.Move), "The action on the pushes.", "move"),
	rest.Row("filter", rest.Optional, rest.Object(&bulkFilter, func(f *bulkForm) *pushFilter { return &f.filter }),
		"Selects among the scheduled pushes. The members are the filters of the list of pushes, and a push must match all of them. Required, unless all is true.", nil),
	rest.Row("all", rest.Optional, rest.Boolean(func(f *bulkForm, v bool) { f.all = v }), "Selects all scheduled pushes. Must be true without a filter, and only then.", nil),
	rest.Row("shift", rest.Optional, shift(func(f *bulkForm, d time.Duration) { f.Shift, f.moved = d, true }),
		"The time span by which each push is sent later, or earlier with a minus sign: whole seconds, up to a year. For move, which needs either shift or send_at.", "1h30m"),
	rest.Row("send_at", rest.Optional, rest.Moment(func(f *bulkForm, t time.Time) { f.SendAt, f.moved = t, true }),
		"The new send time of all pushes, with a zone. A fraction of a second is rounded up. For move.", nil),
}}

const shiftShape = `^[+-]?([0-9]+([.][0-9]+)?d|([0-9]+([.][0-9]+)?d)?([0-9]+([.][0-9]+)?(ms|s|m|h))+)$`

// shift reads a time span that may be negative, but not 0.
func shift[T any](set func(*T, time.Duration)) rest.Value[T] {
	shape := regexp.MustCompile(shiftShape)
	return rest.Scalar(set, huma.Schema{Type: huma.TypeString, Pattern: shiftShape}, func(text string) (time.Duration, string) {
		d, err := duration.Parse(text)
		if err != nil || !shape.MatchString(text) || d == 0 || d%time.Second != 0 || d.Abs() > maxShift {
			return 0, "must be a time span of whole seconds, up to " + duration.Words(maxShift) + " and not 0, written like 90s, 1h30m, 7d or -15m"
		}
		return d, ""
	})
}

// check adds errors that concern several members.
func (f *bulkForm) check(errs *rest.FieldErrors) {
	f.Filter = f.filter.Filter
	empty := f.Filter == push.Filter{}
	unread := errs.Has("filter")
	for _, field := range bulkFilter.Fields {
		unread = unread || errs.Has("filter."+field.Name)
	}
	switch {
	case unread || errs.Has("all"):
	case empty && !f.all:
		errs.Add("filter", "must not be empty; to select all scheduled pushes, set all to true", nil)
	case !empty && f.all:
		errs.Add("all", "must not be true together with a filter", nil)
	}
	if !f.Filter.From.IsZero() && !f.Filter.Until.IsZero() && !f.Filter.From.Before(f.Filter.Until) {
		errs.Add("filter.until", "must be after from", rest.Stamp(f.Filter.Until))
	}
	given := errs.Has("shift") || errs.Has("send_at")
	switch {
	case f.Action == bulkchange.Cancel && f.Shift != 0:
		errs.Add("shift", "is for the action move only", f.Shift.String())
	case f.Action == bulkchange.Cancel && !f.SendAt.IsZero():
		errs.Add("send_at", "is for the action move only", rest.Stamp(f.SendAt))
	case f.Shift != 0 && !f.SendAt.IsZero():
		errs.Add("send_at", "must be absent, because shift is given", rest.Stamp(f.SendAt))
	case f.Action == bulkchange.Move && !f.moved && !given:
		errs.Add("shift", "is required, or send_at instead", nil)
	}
}

// readBulk reads the body of a bulk change. wrong has errors that depend on the current time: a request that is repeated after its
// time has passed must return the same bulk change.
func (h *bulkChanges) readBulk(c *rest.Call, bad *rest.FieldErrors) (p bulkchange.Change, body []byte, wrong error, err error) {
	var (
		f     bulkForm
		found rest.FieldErrors
		late  rest.FieldErrors
	)
	if body, err = c.Object(rest.MaxBody, bad, func(r *rest.Reader) { bulkFields.Read(r, &f, &found) }); err != nil {
		return p, nil, nil, err
	}
	f.Tenant = c.Caller.Tenant
	if up := f.SendAt.Truncate(time.Second); up.Before(f.SendAt) {
		f.SendAt = up.Add(time.Second)
	}
	if now := c.Now(); !f.SendAt.IsZero() && !found.Has("send_at") && f.SendAt.Before(now.Add(-time.Minute)) {
		late.List.Add("send_at", rest.Stamp(f.SendAt), "must not be more than a minute in the past; it is now %s", invalid.Now(now))
	}
	if len(bad.List)+len(found.List) > 0 {
		found.List = append(found.List, late.List...)
	}
	bad.AddAll("body", found)
	var only rest.FieldErrors
	only.AddAll("body", late)
	return f.Change, body, only.Err(), bad.Err()
}
