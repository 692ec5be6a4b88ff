package recurrence

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// Schedule repeats a push or a campaign at the times of a cron expression in a zone.
type Schedule struct {
	ID, Tenant           uuid.UUID
	Name, Cron, TimeZone string
	Pattern              Pattern   // the pushes; without a recipient if there is a campaign
	Campaign             uuid.UUID // the campaign to copy; Nil: none
	CatchUp              CatchUp
	Paused               bool
	Until                time.Time // exclusive end of the occurrences; zero: no end
	CreatedAt, UpdatedAt time.Time

	Began  time.Time // the origin of the intervals of an @every
	Done   time.Time // all occurrences up to here are recorded
	NextAt time.Time // the first occurrence after Done; zero: none
}

// The states of a schedule.
const (
	Active = "active"
	Paused = "paused" // occurrences are skipped
	Ended  = "ended"  // no more occurrences
)

// Status returns the state of the schedule.
func (p *Schedule) Status() string {
	switch {
	case p.NextAt.IsZero():
		return Ended
	case p.Paused:
		return Paused
	}
	return Active
}

// Pattern is the template of each push of a schedule, as the API writes it.
type Pattern struct {
	Recipient  string          `json:"recipient"`
	Channel    string          `json:"channel,omitempty"` // "": the default channel
	Category   string          `json:"category,omitempty"`
	To         string          `json:"to,omitempty"`
	Message    json.RawMessage `json:"message"`
	Template   bool            `json:"template,omitempty"`  // the strings of the message are templates
	Variables  json.RawMessage `json:"variables,omitempty"` // variables of the templates; an object
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	OnConflict string          `json:"on_conflict,omitempty"` // reject or defer

	Latest       time.Time `json:"latest,omitzero"`
	ExpiresAt    time.Time `json:"expires_at,omitzero"`
	ExpiresAfter Span      `json:"expires_after,omitzero"` // after each push's send time, if that is earlier than ExpiresAt; zero: ExpiresAt applies
}

// Span is a duration that JSON represents as text, such as 4h.
type Span time.Duration

// String returns the duration without zero minutes and seconds.
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

// RunOutcome is the outcome of an occurrence.
type RunOutcome string

// The outcomes of occurrences. An occurrence that was only begun has none.
const (
	Submitted RunOutcome = "submitted" // Push or Campaign names the result
	Refused   RunOutcome = "refused"   // Reason gives the reason
	Skipped   RunOutcome = "skipped"   // Reason is missed or paused
)

// Run is one occurrence of a schedule and its outcome.
type Run struct {
	Schedule uuid.UUID
	At       time.Time
	Outcome  RunOutcome
	Push     uuid.UUID // the submitted push
	Campaign uuid.UUID // the submitted campaign
	Reason   string
	Rules    []string // the rules that refused it
	Detail   string   // explains the reason; "": nothing to add
}

// Occurrence is an occurrence that was begun and must be submitted.
type Occurrence struct {
	Schedule Schedule
	At       time.Time
	Late     time.Duration // by Postgres' clock
	Begun    time.Duration // the time since it was begun
	Caps     push.OwnCaps  // the tenant's caps
}

// Page is a page of a list of schedules.
type Page struct {
	Schedules []Schedule
	Next      uuid.UUID // the schedule after which the next page begins; Nil: this is the last one
}

// RunPage is a page of a schedule's occurrences and outcomes, the latest first.
type RunPage struct {
	Runs []Run
	Next time.Time // the time before which the next page begins; zero: this is the last one
}

var (
	// ErrTooMany: the tenant has reached the maximum number of schedules.
	ErrTooMany = errors.New("the tenant already has the maximum number of schedules")
	// ErrNoPattern: the campaign that a schedule is to copy does not exist.
	ErrNoPattern = errors.New("the campaign to copy does not exist")
)
