package record

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// SendFilter selects attempts of a tenant. Zero fields select all.
type SendFilter struct {
	Recipient, Channel, Category string
	Campaign                     uuid.UUID
	Outcome                      push.Outcome
	From, Until                  time.Time // From ≤ its start < Until
}

// Send is an attempt that has ended, with its push.
type Send struct {
	Push                         uuid.UUID
	Recipient, Channel, Category string
	Campaign                     uuid.UUID // zero: none
	SendAt                       time.Time // the promised time; zero: it was not recorded then
	push.Send
}

// SendPosition is a position in a list of attempts: after the one with this start and push.
type SendPosition struct {
	StartedAt time.Time
	Push      uuid.UUID
}

// SendPage is a page of attempts. Next is where the next page begins; nil: this is the last one.
type SendPage struct {
	Sends []Send
	Next  *SendPosition
}

// RefusalFilter selects refusals of a tenant. Zero fields select all.
type RefusalFilter struct {
	Recipient   string
	Campaign    uuid.UUID
	Rule        string
	From, Until time.Time // From ≤ time of the refusal < Until
}

// Refusal is a push that was refused.
type Refusal struct {
	At                           time.Time
	Recipient, Channel, Category string
	Campaign                     uuid.UUID // zero: none
	Line                         int       // the line of the campaign's audience
	RequestedSendAt              time.Time // zero: as soon as possible
	Reason                       string    // the name of the API's problem
	Rules                        []string  // the rules that refused it
	Conflicts                    json.RawMessage
}

// RefusalPosition is a position in a list of refusals: after the one with this time, campaign and line.
type RefusalPosition struct {
	At       time.Time
	Campaign uuid.UUID
	Line     int
}

// RefusalPage is a page of refusals. Next is where the next page begins; nil: this is the last one.
type RefusalPage struct {
	Refusals []Refusal
	Next     *RefusalPosition
}
