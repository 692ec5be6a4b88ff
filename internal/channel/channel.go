package channel

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
)

// Channel is a configured way out.
type Channel interface {
	// Check says what the provider would surely refuse about a push, to an address and with a message, as far as that
	// can be known beforehand. It makes no request.
	Check(to string, message json.RawMessage) invalid.FieldErrors

	// Send makes one attempt to hand p to the provider; attempt is 1 for the first. It returns within the channel's
	// own timeout, or earlier when ctx ends, and is safe for concurrent use. A failure is a Result, not an error:
	// what matters is whether the push may have been delivered.
	Send(ctx context.Context, p push.Push, attempt int) Result
}

// Result says what became of one attempt.
type Result struct {
	Outcome           push.Outcome
	Final             bool          // refused for good: trying again is pointless
	Unregistered      bool          // refused for good, because the provider reports the address as unregistered: it should not be used again
	OneAddress        bool          // refused because of this address alone, such as too many messages to one device: it says nothing about others
	Down              bool          // not handed over for a reason that is no matter of this push: the provider cannot be reached, does not work, or does not know us
	RetryAfter        time.Duration // the provider asked to wait so long, at most 400 days; 0 if it did not
	Handed            time.Time     // when the provider had all of the message; zero: not known
	ProviderMessageID string        // the provider's own id of the message, where it gave one; at most 255 printable bytes
	Error             string        // why it was not delivered, at most 300 bytes; empty if it was
}
