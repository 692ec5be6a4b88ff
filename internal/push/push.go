package push

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Push is one message for one recipient through one channel at one send time. All times are UTC; promised times
// (RequestedSendAt, SendAt) are whole seconds.
type Push struct {
	ID        uuid.UUID
	Tenant    uuid.UUID
	Recipient string // the tenant's own opaque id, 1–128 printable bytes
	Channel   string
	Category  string
	To        string          // the address, where the channel needs one
	Message   json.RawMessage // a JSON object, handed to the provider as it came
	Metadata  json.RawMessage // a JSON object, or nil
	Rendering json.RawMessage // makes the message again, as it has the time of its sending in it; nil: it has not

	RequestedSendAt time.Time     // what the caller asked for, rounded up to a second
	SendAt          time.Time     // the promise: the place that the push holds in the quota
	NextAt          time.Time     // when to try next: SendAt at first, later after retries and deferrals
	ExpiresAt       time.Time     // from here on it is not sent any more
	TTL             time.Duration // ExpiresAt moves with SendAt, so long behind it; 0: the caller fixed ExpiresAt
	Bulk            bool          // the tenant has many for the same second: those of others come first

	Status            Status
	Gen               int64 // grows whenever the plan changes: a claim that read another Gen changes nothing
	Attempts          int
	LastError         string // why the last attempt failed, or why the push ended
	PossiblyDelivered bool   // an attempt ended with an unknown outcome
	Held              Hold   // why it was last not sent when it was due; zero: it was not held

	IdempotencyID   uuid.UUID // stands for the tenant's Idempotency-Key; zero without one
	IdempotencyHash []byte    // SHA-256 of the request that bore it; nil without one
	RequestMember   uuid.UUID // stands for the key and the number of the push in that request; only until it is booked
	Campaign        uuid.UUID // that it is of; zero: of none
	Retry           RetryLinks
	RequestID       string // the X-Request-Id of the request that submitted it; empty: not known
	CreatedAt       time.Time
	UpdatedAt       time.Time

	Sends []Send // oldest first; filled only where a single push is read
}

// Hold says why a due push was not sent.
type Hold struct {
	By    string    // the name of a rule or of quiet hours, or [PausedCampaign]; empty: it was not held
	Since time.Time // when it was due, or when the pause began if that was later
	Until time.Time // when it may be sent, or could be; zero: not known
}

// PausedCampaign holds pushes of a campaign that is paused. No rule has such a name.
const PausedCampaign = "pause:campaign"

// RetryLinks says which pushes a push retries, and which retries it has. Zero ids stand for none.
type RetryLinks struct {
	Of     uuid.UUID // the push that it retries
	First  uuid.UUID // of all pushes that were retried one after the other, up to this one
	Doubt  bool      // one of them may have been delivered
	Latest uuid.UUID // of the first one: the latest of all retries; filled only where pushes are read by their ids
}

// Send is one delivery attempt.
type Send struct {
	Attempt           int // 1, 2, …
	StartedAt         time.Time
	EndedAt           time.Time // zero while the attempt is under way
	Outcome           Outcome   // empty while the attempt is under way
	ProviderMessageID string
	Error             string
}

// Outcome says what became of one attempt.
type Outcome string

// The outcomes of an attempt.
const (
	Delivered Outcome = "delivered" // the provider took it
	Refused   Outcome = "refused"   // surely not delivered
	Unknown   Outcome = "unknown"   // may have been delivered
)

// WakeUp is the queue's task: something is due in a lane. It carries ids only and decides nothing: the worker that it
// wakes asks Postgres what to do.
type WakeUp struct {
	Lane Lane
	At   time.Time // when to wake up, by Postgres' clock
	Part int       // 0, 1, …: so many are armed for the same time that several workers can help

	// In is how far away At was, by Postgres' clock, when the wake-up was made: for a queue whose clock is another
	// one. It does not travel.
	In time.Duration `json:"-"`
}
