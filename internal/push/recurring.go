package push

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Schedule is a push, or a campaign, that is sent again and again, at the times that a cron expression says on the clocks of a zone.
type Schedule struct {
	ID, Tenant           uuid.UUID
	Name, Cron, TimeZone string
	Pattern              Pattern   // of the pushes; without a recipient if there is a campaign
	Campaign             uuid.UUID // the pattern of the campaigns; Nil: there is none
	CatchUp              CatchUp
	Paused               bool
	Until                time.Time // no occurrence is at this time or behind it; zero: there is no such time
	CreatedAt, UpdatedAt time.Time

	Began  time.Time // from when on an @every counts
	Done   time.Time // all occurrences up to here are on record
	NextAt time.Time // the first occurrence after Done; zero: there is none
}

// The states of a schedule.
const (
	ScheduleActive = "active"
	SchedulePaused = "paused" // its occurrences are skipped
	ScheduleEnded  = "ended"  // there are no more
)

// Status is the state of the schedule.
func (p *Schedule) Status() string {
	switch {
	case p.NextAt.IsZero():
		return ScheduleEnded
	case p.Paused:
		return SchedulePaused
	}
	return ScheduleActive
}

// Pattern is what each push of a schedule is like, as the API writes it.
type Pattern struct {
	Recipient  string          `json:"recipient"`
	Channel    string          `json:"channel,omitempty"` // empty: the default one
	Category   string          `json:"category,omitempty"`
	To         string          `json:"to,omitempty"`
	Message    json.RawMessage `json:"message"`
	Template   bool            `json:"template,omitempty"`  // the strings of the message are templates
	Variables  json.RawMessage `json:"variables,omitempty"` // that they know; an object
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	OnConflict string          `json:"on_conflict,omitempty"` // reject or defer

	Latest       time.Time `json:"latest,omitzero"`
	ExpiresAt    time.Time `json:"expires_at,omitzero"`
	ExpiresAfter Span      `json:"expires_after,omitzero"` // after each push's send time, if that is earlier than ExpiresAt; zero: see there
}

// Span is a duration that JSON has as a text, such as 4h.
type Span time.Duration

// String is the duration without minutes and seconds that are zero.
func (s Span) String() string {
	text := time.Duration(s).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText writes the span.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a span.
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*s = Span(d)
	return err
}

// CatchUp says what becomes of occurrences that were missed while nothing ran.
type CatchUp string

// The ways to catch up.
const (
	CatchUpSkip CatchUp = "skip" // none of them is done
	CatchUpLast CatchUp = "last" // the latest of them is done
)

// RunOutcome is what became of an occurrence.
type RunOutcome string

// The outcomes of occurrences. One that has none was begun.
const (
	RunSubmitted RunOutcome = "submitted" // Push is the push, or Campaign the campaign
	RunRefused   RunOutcome = "refused"   // Reason says why
	RunSkipped   RunOutcome = "skipped"   // Reason is missed or paused
)

// Run is what became of one occurrence of a schedule.
type Run struct {
	Schedule uuid.UUID
	At       time.Time
	Outcome  RunOutcome
	Push     uuid.UUID // of one that was submitted
	Campaign uuid.UUID // the same, of a campaign
	Reason   string
	Rules    []string // that have refused it
	Detail   string   // more about the reason; empty: there is nothing more to say
}

// Occurrence is an occurrence that was begun, and is to be submitted.
type Occurrence struct {
	Schedule Schedule
	At       time.Time
	Late     time.Duration // by Postgres' clock
	Begun    time.Duration // for how long it has been begun
	Caps     OwnCaps       // of its tenant
}

// SchedulePage is a page of a list of schedules.
type SchedulePage struct {
	Schedules []Schedule
	Next      uuid.UUID // behind which the next page begins; Nil: this is the last one
}

// RunPage is a page of what became of a schedule's occurrences, the latest first.
type RunPage struct {
	Runs []Run
	Next time.Time // before which the next page begins; zero: this is the last one
}
