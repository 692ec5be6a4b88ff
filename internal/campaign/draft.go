package campaign

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/liquid"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/zone"
)

// MaxSpread is the maximum spread of a campaign. A longer one is better sent as several campaigns.
const MaxSpread = 24 * time.Hour

// MaxMessage is the maximum size of a campaign's message in bytes, including parts that are no templates.
const MaxMessage = 256 << 10

// MaxMetadata is the maximum size of a campaign's metadata in bytes. Each of its pushes has a copy.
const MaxMetadata = 16 << 10

// reject is the default for on_conflict.
const reject = "reject"

// Change is a caller's change of a draft. A nil member stays, or has its default in a new draft. A zero value is the
// default.
type Change struct {
	Name, Channel, Category *string
	SendAt, LocalTime       *time.Time // setting one of them clears the other
	TimeZone                *string    // goes with the local time
	Spread                  *time.Duration
	OnConflict              *string
	Latest                  *time.Time
	ExpiresAfter            *time.Duration
	Message, Metadata       *json.RawMessage
}

// on applies the change to a draft.
func (c Change) on(p broadcast.Campaign) broadcast.Campaign {
	set(&p.Name, c.Name)
	set(&p.Channel, c.Channel)
	set(&p.Category, c.Category)
	if given(c.SendAt) {
		p.LocalTime, p.TimeZone = time.Time{}, ""
	}
	if given(c.LocalTime) {
		p.SendAt = time.Time{}
	}
	set(&p.SendAt, c.SendAt)
	set(&p.LocalTime, c.LocalTime)
	if p.LocalTime.IsZero() {
		p.TimeZone = ""
	}
	set(&p.TimeZone, c.TimeZone)
	set(&p.Spread, c.Spread)
	set(&p.OnConflict, c.OnConflict)
	set(&p.Latest, c.Latest)
	set(&p.ExpiresAfter, c.ExpiresAfter)
	set(&p.Message, c.Message)
	set(&p.Metadata, c.Metadata)
	if !p.SendAt.IsZero() {
		p.SendAt = secondUp(p.SendAt)
	}
	return p
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func given(t *time.Time) bool { return t != nil && !t.IsZero() }

// secondUp rounds a send time up to a second.
func secondUp(t time.Time) time.Time {
	up := t.UTC().Truncate(quota.Second)
	if up.Before(t) {
		up = up.Add(quota.Second)
	}
	return up
}

// Check returns all faults of a change of a draft; the zero campaign is a new one. Callers merge these with their own
// errors. It does not check what the change leaves as it is.
func (s *Service) Check(c Change, of broadcast.Campaign) invalid.FieldErrors {
	return append(checkTemplates(c), s.check(s.complete(c, of.Tenant), of)...)
}

// checkTemplates checks the message alone.
func checkTemplates(c Change) (bad invalid.FieldErrors) {
	if c.Message == nil {
		return nil
	}
	if len(*c.Message) > MaxMessage {
		bad.Add("message", nil, "must have at most %d bytes, has %d", MaxMessage, len(*c.Message))
	}
	_, wrong := liquid.Parse(*c.Message)
	return append(bad, wrong...)
}

// check is Check without the templates of the message.
func (s *Service) check(c Change, of broadcast.Campaign) (bad invalid.FieldErrors) {
	p := c.on(of)
	if c.Channel != nil && p.Channel != "" && !slices.Contains(s.cfg.channels(of.Tenant), p.Channel) {
		bad.Add("channel", p.Channel, "%s", invalid.UnknownName("channel", p.Channel, s.cfg.channels(of.Tenant)))
	}
	s.checkTimes(c, &p, &bad)
	if c.Spread != nil && (p.Spread < 0 || p.Spread > MaxSpread || p.Spread%quota.Second != 0) {
		bad.Add("spread", recurrence.Span(p.Spread).String(), "must be a time span of whole seconds, from 0 seconds to %s, written like 90s or 30m", duration.Words(MaxSpread))
	}
	if c.Metadata != nil && len(p.Metadata) > MaxMetadata {
		bad.Add("metadata", nil, "must have at most %d bytes, has %d", MaxMetadata, len(p.Metadata))
	}
	if (c.Message != nil || c.Channel != nil) && s.cfg.checks() && p.Message != nil {
		s.checkMessage(&p, &bad)
	}
	return bad
}

// checkMessage finds what the provider would certainly refuse in every recipient's message: in the parts without
// templates, and apart from the address.
func (s *Service) checkMessage(p *broadcast.Campaign, bad *invalid.FieldErrors) {
	for _, f := range s.cfg.check(p.Tenant, p.Channel, "", p.Message) {
		if f.Field != "to" && !liquid.Templated(p.Message, f.Field) {
			*bad = append(*bad, f)
		}
	}
}

// checkTimes checks the members for times against each other. For a local time in the recipients' zones, it uses the
// earliest and the latest instant when some clock shows it.
func (s *Service) checkTimes(c Change, p *broadcast.Campaign, bad *invalid.FieldErrors) {
	now := s.now().UTC()
	if given(c.SendAt) && given(c.LocalTime) {
		bad.Add("local_time", local(*c.LocalTime), "must not be given together with send_at")
		return
	}
	first, last, field, written, start := p.SendAt, p.SendAt, "send_at", stamp(p.SendAt), any(p.SendAt)
	if !p.LocalTime.IsZero() {
		field, written = "local_time", local(p.LocalTime)
		start = written
		first, last = p.LocalTime.Add(-14*time.Hour), p.LocalTime.Add(12*time.Hour)
	}
	if p.TimeZone != "" {
		switch in, err := zone.Load(p.TimeZone); {
		case p.LocalTime.IsZero():
			bad.Add("time_zone", p.TimeZone, "must not be given without local_time")
		case err != nil && c.TimeZone != nil:
			bad.Add("time_zone", p.TimeZone, "%v", err)
		case err == nil:
			first = zone.Instant(p.LocalTime, in)
			last = first
		}
	}
	if moved := given(c.SendAt) || given(c.LocalTime) || c.TimeZone != nil && !p.LocalTime.IsZero(); moved {
		switch {
		case last.Before(now.Add(-time.Minute)):
			bad.Add(field, written, "must not be more than a minute in the past; it is now %s", invalid.Now(now))
		case first.After(now.Add(s.cfg.MaxHorizon)):
			bad.Add(field, written, "must not be more than %s ahead; it is now %s", s.cfg.MaxHorizon, invalid.Now(now))
		case !first.IsZero() && !p.Latest.IsZero() && c.Latest == nil && p.Latest.Before(first):
			bad.Add(field, written, "must not be after latest, %s", p.Latest)
		}
	}
	end := first.Add(p.Spread - quota.Second) // of the last recipient, at the earliest
	switch spreads := p.Spread > quota.Second && !first.IsZero() && !p.Latest.Before(first) && p.Latest.Before(end); {
	case spreads && given(c.Latest):
		bad.Add("latest", stamp(p.Latest), "must not be before the end of the spread, %s", end)
	case spreads && (c.Spread != nil || given(c.SendAt) || given(c.LocalTime)):
		bad.Add("spread", recurrence.Span(p.Spread).String(), "must not reach beyond latest, %s", p.Latest)
	case !given(c.Latest):
	case !first.IsZero() && p.Latest.Before(first):
		bad.Add("latest", stamp(p.Latest), "must not be before %s, %s", field, start)
	case p.Latest.Before(now):
		bad.Add("latest", stamp(p.Latest), "must be in the future; it is now %s", invalid.Now(now))
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func local(t time.Time) string { return t.Format("2006-01-02T15:04:05") }
