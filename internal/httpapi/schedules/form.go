package schedules

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/recurring"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

// The bounds of a schedule's texts, in bytes.
const (
	maxScheduleName = 128
	maxCron         = 256
)

// scheduleForm is a schedule in a request.
type scheduleForm struct {
	recurring.Change
	push       *schedule.Request // nil: absent
	found      rest.FieldErrors  // of push
	noPush     bool              // push is null
	noCampaign bool              // likewise
}

// scheduleFields is the body that creates a schedule, and scheduleChanges the body that changes one.
var (
	scheduleFields  = rest.Table[scheduleForm]{SchemaName: "NewSchedule", Fields: scheduleRows(rest.Required)}
	scheduleChanges = rest.Table[scheduleForm]{SchemaName: "ScheduleChange", Fields: scheduleRows(rest.Optional)}
)

func scheduleRows(whole bool) []rest.Field[scheduleForm] {
	catchUp, paused := rest.OneOf(func(f *scheduleForm, c recurrence.CatchUp) { f.CatchUp = &c }, recurrence.Skip, recurrence.Last), rest.Boolean(func(f *scheduleForm, p bool) { f.Paused = &p })
	if whole {
		catchUp, paused = catchUp.Or(string(recurrence.Skip)), paused.Or("false")
	}
	return []rest.Field[scheduleForm]{
		rest.Row("name", rest.Optional, rest.Text(func(f *scheduleForm, s string) { f.Name = &s }, 0, maxScheduleName), "A name of your choice.", "Monday digest"),
		rest.Row("cron", whole, rest.Text(func(f *scheduleForm, s string) { f.Cron = &s }, 1, maxCron),
			"The times of the occurrences: the five fields of cron (minute, hour, day of month, month, weekday 0 to 6; with names), @hourly, @daily, @weekly, @monthly, @yearly, or @every with a span of at least a minute. "+
				"If both day of month and weekday are given, either may match.", "0 9 * * MON"),
		rest.Row("time_zone", rest.Optional, rest.Text(func(f *scheduleForm, s string) { f.TimeZone = &s }, 1, pushes.MaxZone),
			"The time zone of cron, an IANA name. Default: the default_zone of the policy, or UTC.", "Europe/Berlin"),
		rest.Row("push", rest.Optional, patternValue(), "The pattern of each push: a push without a send time. A schedule has either push or campaign.", nil),
		rest.Row("campaign", rest.Optional, rest.Identifier(func(f *scheduleForm, id uuid.UUID) { f.Campaign = &id }).OrNull(func(f *scheduleForm) { f.noCampaign = true }),
			"The pattern of each campaign: a draft, or a finished campaign. Each occurrence uses its current audience.", nil),
		rest.Row("catch_up", rest.Optional, catchUp, "The handling of occurrences that were missed while nothing ran: skip all of them, or run the last one late.", nil),
		rest.Row("paused", rest.Optional, paused, "Occurrences are skipped while this is true.", nil),
		rest.Row("until", rest.Optional, rest.Moment(func(f *scheduleForm, t time.Time) { f.Until = &t }).OrNull(func(f *scheduleForm) { f.Until = &time.Time{} }),
			"The end of the schedule, exclusive; null: it has no end.", "2027-06-30T00:00:00Z"),
	}
}

// patternFields is the pattern of each push of a schedule.
var patternFields = rest.Table[schedule.Request]{SchemaName: "PushPattern", Refuse: timeOfPattern, Check: pushes.CheckTemplate, Fields: patternRows()}

func patternRows() []rest.Field[schedule.Request] {
	rows := slices.DeleteFunc(slices.Clone(pushes.PushFields.Fields), func(f rest.Field[schedule.Request]) bool { return timed(f.Name) })
	return append(rows, rest.Row("expires_after", rest.Optional, rest.Span(func(p *schedule.Request, d time.Duration) { p.TTL = d }, time.Second, pushes.MaxExpiresAfter),
		"The time span from its send time after which each push expires, unless it expires earlier at expires_at, which is the same time for all pushes.", "4h"))
}

// timed reports whether a member defines the send time of a push.
func timed(name string) bool { return name == "send_at" || name == "local_time" || name == "time_zone" }

func timeOfPattern(name string, raw []byte, errs *rest.FieldErrors) bool {
	if timed(name) {
		errs.AddJSON(name, "must not be in a pattern: cron and time_zone of the schedule define the send time", raw)
	}
	return timed(name)
}

func patternValue() rest.Value[scheduleForm] {
	return rest.Value[scheduleForm]{Describe: patternFields.Schema, JSON: func(f *scheduleForm, raw []byte, _ string, _ *rest.FieldErrors) string {
		if string(raw) == "null" {
			f.noPush = true
			return ""
		}
		f.push, f.found = &schedule.Request{}, rest.FieldErrors{}
		rest.ReadAgain(raw, func(r *rest.Reader) { patternFields.Read(r, f.push, &f.found) })
		return ""
	}}
}

// eitherOr adds an error unless the schedule has exactly one of push and campaign. It is new, or was like old.
func (f *scheduleForm) eitherOr(isNew bool, old recurrence.Schedule, found *rest.FieldErrors) {
	unread := found.Has("push") || found.Has("campaign")
	hasPush, hasCampaign := f.push != nil, f.Campaign != nil
	switch {
	case hasPush && hasCampaign:
		found.Add("campaign", "must be null or absent, because push is given", f.Campaign.String())
	case hasPush || hasCampaign || unread:
	case isNew:
		found.Add("push", "is required, or campaign instead", nil)
	case f.noPush && old.Campaign == uuid.Nil:
		found.Add("push", "must not be null: a schedule needs push or campaign", nil)
	case f.noCampaign && old.Campaign != uuid.Nil:
		found.Add("campaign", "must not be null: a schedule needs push or campaign", nil)
	}
}

// patternOf returns the pattern of pushes like a request.
func patternOf(p *schedule.Request) *recurrence.Pattern {
	of := &recurrence.Pattern{
		Recipient: p.Recipient, Channel: p.Channel, Category: p.Category, To: p.To, Message: p.Message, Template: p.Template, Variables: p.Variables, Metadata: p.Metadata,
		Latest: p.Latest, ExpiresAt: p.ExpiresAt, ExpiresAfter: recurrence.Span(p.TTL),
	}
	if p.Defer {
		of.OnConflict = "defer"
	}
	return of
}

// readSchedule reads the change of a schedule; old is the zero value for a new one. It returns all errors in the
// form of the request. If there are any, it adds all other errors.
func (h *schedules) readSchedule(c *rest.Call, of *rest.Table[scheduleForm], old recurrence.Schedule, bad *rest.FieldErrors) (recurring.Change, []byte, error) {
	var (
		f     scheduleForm
		found rest.FieldErrors
	)
	body, err := c.Object(rest.MaxBody, bad, func(r *rest.Reader) { of.Read(r, &f, &found) })
	if err != nil {
		return f.Change, nil, err
	}
	if f.push != nil {
		h.forms.Complete(c, &patternFields, f.push, &f.found)
		found.AddAll("push", f.found)
		f.Pattern = patternOf(f.push)
	}
	f.eitherOr(of == &scheduleFields, old, &found)
	if len(bad.List)+len(found.List) > 0 {
		unread := found
		old.Tenant = c.Caller.Tenant
		all, err := h.svc.Check(c.Request.Context(), f.Change, old)
		if err != nil {
			return f.Change, nil, err
		}
		for _, one := range all {
			if !unread.Has(one.Field) {
				found.Keep(one)
			}
		}
	}
	bad.AddAll("body", found)
	return f.Change, body, bad.Err()
}
