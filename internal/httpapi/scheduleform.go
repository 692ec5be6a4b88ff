package httpapi

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/recurring"
)

// The bounds of a schedule's texts, in bytes.
const (
	maxScheduleName = 128
	maxCron         = 256
)

// scheduleForm is a schedule as a caller asks for it.
type scheduleForm struct {
	recurring.Change
	push       *form // nil: there was none
	noPush     bool  // it is null
	noCampaign bool  // the same
}

// scheduleFields is the body that makes a schedule, and scheduleChanges the one that changes some of it.
var (
	scheduleFields  = table[scheduleForm]{schemaName: "NewSchedule", fields: scheduleRows(required)}
	scheduleChanges = table[scheduleForm]{schemaName: "ScheduleChange", fields: scheduleRows(optional)}
)

func scheduleRows(whole bool) []field[scheduleForm] {
	catchUp, paused := oneOf(func(f *scheduleForm, c push.CatchUp) { f.CatchUp = &c }, push.CatchUpSkip, push.CatchUpLast), boolean(func(f *scheduleForm, p bool) { f.Paused = &p })
	if whole {
		catchUp, paused = catchUp.or(string(push.CatchUpSkip)), paused.or("false")
	}
	return []field[scheduleForm]{
		row("name", optional, text(func(f *scheduleForm, s string) { f.Name = &s }, 0, maxScheduleName), "A name of your choice.", "Monday digest"),
		row("cron", whole, text(func(f *scheduleForm, s string) { f.Cron = &s }, 1, maxCron),
			"The times of the occurrences: the five fields of cron (minute, hour, day of month, month, weekday 0 to 6; with names), @hourly, @daily, @weekly, @monthly, @yearly, or @every with a span of at least a minute. "+
				"If both day of month and weekday are given, either may match.", "0 9 * * MON"),
		row("time_zone", optional, text(func(f *scheduleForm, s string) { f.TimeZone = &s }, 1, maxZone),
			"The time zone of cron, an IANA name. Default: the default_zone of the policy, or UTC.", "Europe/Berlin"),
		row("push", optional, patternValue(), "The pattern of each push: a push without a send time. A schedule has either push or campaign.", nil),
		row("campaign", optional, identifier(func(f *scheduleForm, id uuid.UUID) { f.Campaign = &id }).orNull(func(f *scheduleForm) { f.noCampaign = true }),
			"The pattern of each campaign: a draft, or a finished campaign. Each occurrence uses its current audience.", nil),
		row("catch_up", optional, catchUp, "The handling of occurrences that were missed while nothing ran: skip all of them, or run the last one late.", nil),
		row("paused", optional, paused, "Occurrences are skipped while this is true.", nil),
		row("until", optional, moment(func(f *scheduleForm, t time.Time) { f.Until = &t }).orNull(func(f *scheduleForm) { f.Until = &time.Time{} }),
			"The end of the schedule, exclusive; null: it has no end.", "2027-06-30T00:00:00Z"),
	}
}

// patternFields is what each push of a schedule is like.
var patternFields = table[form]{schemaName: "PushPattern", refuse: timeOfPattern, check: checkTemplate, fields: patternRows()}

func patternRows() []field[form] {
	rows := slices.DeleteFunc(slices.Clone(pushFields.fields), func(f field[form]) bool { return timed(f.name) })
	return append(rows, row("expires_after", optional, span(func(f *form, d time.Duration) { f.expiresAfter = d }, time.Second, maxExpiresAfter),
		"The time span from its send time after which each push expires, unless it expires earlier at expires_at, which is the same time for all pushes.", "4h"))
}

// timed tells of a member that says when a push is sent.
func timed(name string) bool { return name == "send_at" || name == "local_time" || name == "time_zone" }

func timeOfPattern(name string, raw []byte, errs *fieldErrors) bool {
	if timed(name) {
		errs.addJSON(name, "must not be in a pattern: cron and time_zone of the schedule define the send time", raw)
	}
	return timed(name)
}

func patternValue() value[scheduleForm] {
	return value[scheduleForm]{describe: patternFields.schema, json: func(f *scheduleForm, raw []byte, _ string, _ *fieldErrors) string {
		if string(raw) == "null" {
			f.noPush = true
			return ""
		}
		f.push = &form{}
		readAgain(raw, func(r *reader) { f.push.read(r, &patternFields) })
		return ""
	}}
}

// eitherOr says what is wrong with push and campaign together: a schedule, which is new or was like old, has one of them.
func (f *scheduleForm) eitherOr(isNew bool, old push.Schedule, found *fieldErrors) {
	unread := found.has("push") || found.has("campaign")
	hasPush, hasCampaign := f.push != nil, f.Campaign != nil
	switch {
	case hasPush && hasCampaign:
		found.add("campaign", "must be null or absent, because push is given", f.Campaign.String())
	case hasPush || hasCampaign || unread:
	case isNew:
		found.add("push", "is required, or campaign instead", nil)
	case f.noPush && old.Campaign == uuid.Nil:
		found.add("push", "must not be null: a schedule needs push or campaign", nil)
	case f.noCampaign && old.Campaign != uuid.Nil:
		found.add("campaign", "must not be null: a schedule needs push or campaign", nil)
	}
}

// pattern is the pattern that the form asks for.
func (f *form) pattern() *push.Pattern {
	p := &push.Pattern{
		Recipient: f.Recipient, Channel: f.Channel, Category: f.Category, To: f.To, Message: f.Message, Template: f.Template, Variables: f.Variables, Metadata: f.Metadata,
		Latest: f.Latest, ExpiresAt: f.ExpiresAt, ExpiresAfter: push.Span(f.expiresAfter),
	}
	if f.Defer {
		p.OnConflict = "defer"
	}
	return p
}

// readSchedule reads the change of a schedule, which is the zero one if it is new. It returns all that is wrong with the
// form of the request, and then also what else is wrong.
func (h *schedules) readSchedule(c *call, of *table[scheduleForm], old push.Schedule, bad *fieldErrors) (recurring.Change, []byte, error) {
	var (
		f     scheduleForm
		found fieldErrors
	)
	body, err := c.object(maxBody, bad, func(r *reader) { of.read(r, &f, &found) })
	if err != nil {
		return f.Change, nil, err
	}
	if f.push != nil {
		f.push.complete(h.forms.validator(c, f.push))
		found.addAll("push", f.push.fieldErrors)
		f.Pattern = f.push.pattern()
	}
	f.eitherOr(of == &scheduleFields, old, &found)
	if len(bad.list)+len(found.list) > 0 {
		unread := found
		old.Tenant = c.caller.Tenant
		all, err := h.svc.Check(c.r.Context(), f.Change, old)
		if err != nil {
			return f.Change, nil, err
		}
		for _, one := range all {
			if !unread.has(one.Field) {
				found.keep(one)
			}
		}
	}
	bad.addAll("body", found)
	return f.Change, body, bad.err()
}
