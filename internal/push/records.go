package push

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// SendFilter chooses among a tenant's attempts. Zero fields choose all.
type SendFilter struct {
	Recipient, Channel, Category string
	Campaign                     uuid.UUID
	Outcome                      Outcome
	From, Until                  time.Time // From ≤ when it began < Until
}

// SendRecord is an attempt that has ended, with the push that it was of.
type SendRecord struct {
	Push                         uuid.UUID
	Recipient, Channel, Category string
	Campaign                     uuid.UUID // zero: of none
	SendAt                       time.Time // the promise; zero: it was not written down then
	Send
}

// SendPosition is a place in a list of attempts: behind the one that began at this time, of this push.
type SendPosition struct {
	StartedAt time.Time
	Push      uuid.UUID
}

// SendPage is a part of a list of attempts. Next is where the next part begins; nil: this is the last one.
type SendPage struct {
	Sends []SendRecord
	Next  *SendPosition
}

// RefusalFilter chooses among a tenant's refusals. Zero fields choose all.
type RefusalFilter struct {
	Recipient   string
	Campaign    uuid.UUID
	Rule        string
	From, Until time.Time // From ≤ when it was refused < Until
}

// RefusalRecord is a push that was refused.
type RefusalRecord struct {
	At                           time.Time
	Recipient, Channel, Category string
	Campaign                     uuid.UUID // zero: of none
	Line                         int       // of the campaign's audience
	RequestedSendAt              time.Time // zero: as soon as could be
	Reason                       string    // by the name of the API's problem
	Rules                        []string  // that have refused it
	Conflicts                    json.RawMessage
}

// RefusalPosition is a place in a list of refusals: behind the one of this time, campaign and line.
type RefusalPosition struct {
	At       time.Time
	Campaign uuid.UUID
	Line     int
}

// RefusalPage is a part of a list of refusals. Next is where the next part begins; nil: this is the last one.
type RefusalPage struct {
	Refusals []RefusalRecord
	Next     *RefusalPosition
}
