package push

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Push is one message for one recipient through one channel at one send time. All times are UTC; promised times
// (RequestedSendAt, SendAt) are whole seconds.
type Push struct {
	ID     uuid.UUID
	Tenant uuid.UUID
	Content
	Rendering json.RawMessage // renders the message at the time of sending, if it contains that time; else nil

	RequestedSendAt time.Time     // the requested time, rounded up to a second
	SendAt          time.Time     // the promised time: the place of the push in the quota
	NextAt          time.Time     // the time of the next attempt: SendAt at first, later after retries and deferrals
	ExpiresAt       time.Time     // the push is not sent at or after this time
	TTL             time.Duration // ExpiresAt stays this long after SendAt; 0: the caller fixed ExpiresAt
	Level           Level         // of its category, when it was booked or moved
	Own             bool          // while it waits: the channel is one of the tenant's own
	Burst           bool          // the tenant has many pushes for the same second: of the same level, other tenants' pushes go first

	Status            Status
	Gen               int64 // grows with every change of the plan: a claim that read another Gen changes nothing
	Attempts          int
	LastError         string // why the last attempt failed, or why the push ended
	PossiblyDelivered bool   // an attempt ended with an unknown outcome
	Held              Hold   // why it was last not sent when it was due; zero: it was not held
	Paused            bool   // its sending is paused now; set only in the answer to its submit

	IdempotencyID   uuid.UUID // identifies the tenant's Idempotency-Key; zero without one
	IdempotencyHash []byte    // SHA-256 of the request with that key; nil without one
	RequestMember   uuid.UUID // identifies the key and the push's number in that request; only until it is booked
	Campaign        uuid.UUID // the campaign of the push; zero: none
	Retry           RetryLinks
	RequestID       string // the X-Request-Id of the submit; "": not known
	CreatedAt       time.Time
	UpdatedAt       time.Time

	Sends []Send // oldest first; set only if a single push is read

	Unsubscribe string // an absolute https URL that ends the pushes of its category; "": none; set for an attempt, and never stored
}

// Content is the part of a push that its caller chooses and that does not change. A request has the same.
type Content struct {
	Recipient string // the tenant's own opaque id, 1–128 printable bytes
	Channel   string
	Category  string
	To        string          // the address, if the channel needs one
	Message   json.RawMessage // a JSON object, passed to the provider unchanged
	Metadata  json.RawMessage // a JSON object, or nil
}

// Hold is the reason why a due push was not sent.
type Hold struct {
	By    string    // the name of a rule or of quiet hours, [PausedBy] with a scope, or [ChannelBy] with a reason; "": it was not held
	Since time.Time // when it was due, or when the pause began if that was later
	Until time.Time // when it may be sent; zero: not known
}

// Now reports whether a pause holds the push at a time.
func (h Hold) Now(now time.Time) bool {
	return strings.HasPrefix(h.By, PausedBy) && (h.Until.IsZero() || h.Until.After(now))
}

// PausedBy and the scope of a pause hold a paused push. PausedCampaign holds the pushes of a paused campaign, and of a
// pause with that scope. ChannelBy and the reason hold a push while the tenant's own channel sends nothing. No rule has such a name.
const (
	PausedBy       = "pause:"
	PausedCampaign = PausedBy + "campaign"
	ChannelBy      = "channel:"
)

// RetryLinks link a push to the pushes that it retries, and to its own retries. Zero ids mean none.
type RetryLinks struct {
	Of     uuid.UUID // the push that this one retries
	First  uuid.UUID // the first push of the chain of retries up to this one
	Doubt  bool      // one of them may have been delivered
	Latest uuid.UUID // on the first push: the latest of all retries; set only if pushes are read by id
}

// Send is one delivery attempt.
type Send struct {
	Attempt           int // 1, 2, …
	StartedAt         time.Time
	EndedAt           time.Time // zero while the attempt runs
	Outcome           Outcome   // "" while the attempt runs
	ProviderMessageID string
	Error             string
	Segments          int // of the text message that the provider was sent; 0: none, or not known
}

// Outcome is the outcome of one attempt.
type Outcome string

// The outcomes of an attempt.
const (
	Delivered Outcome = "delivered" // the provider accepted it
	Refused   Outcome = "refused"   // certainly not delivered
	Unknown   Outcome = "unknown"   // may have been delivered
)

// WakeUp is the queue's task: something is due in a lane. It carries only ids and decides nothing. The woken worker
// asks Postgres what to do.
type WakeUp struct {
	Lane Lane
	At   time.Time // when to wake up, by Postgres' clock
	Part int       // 0, 1, …: several parts are armed for the same time, so that several workers can help

	// In was the time until At, by Postgres' clock, when the wake-up was created. It serves a queue with another clock.
	// It does not travel.
	In time.Duration `json:"-"`
}

// Filter selects pushes of a tenant. Zero fields select all.
type Filter struct {
	Recipient, Channel, Category string
	Reason                       string // why the last attempt failed, or why the push ended
	Status                       Status
	Campaign                     uuid.UUID
	From, Until                  time.Time // From ≤ send time < Until
}

// Position is a position in a list of pushes: after the push with this send time and id.
type Position struct {
	SendAt time.Time
	ID     uuid.UUID
}

// Page is a page of pushes. Next is where the next page begins; nil: this is the last one.
type Page struct {
	Pushes []Push
	Next   *Position
}
