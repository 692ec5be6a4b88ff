package channel

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/suppression"
)

// Channel is a configured connection to a provider.
type Channel interface {
	// Check returns what the provider would certainly refuse about an address and a message, as far as that can be
	// known in advance. It makes no request.
	Check(to string, message json.RawMessage) invalid.FieldErrors

	// Send makes one attempt to hand p to the provider; attempt is 1 for the first. It returns within the channel's
	// timeout, or earlier when ctx ends, and is safe for concurrent use. It returns failures as a Result, not an error,
	// because the caller must know whether the push may have been delivered.
	Send(ctx context.Context, p push.Push, attempt int) Result
}

// Result is the result of one attempt.
type Result struct {
	Outcome           push.Outcome
	Final             bool               // refused permanently: retrying is pointless
	Unregistered      bool               // refused permanently, because the provider reports the address as unregistered: it should not be used again
	Stopped           bool               // refused permanently, because the owner of the address has answered STOP
	OneAddress        bool               // refused because of this address alone, such as too many messages to one device
	Down              bool               // failed for a reason independent of this push: the provider cannot be reached, does not work, or does not accept our credentials
	RetryAfter        time.Duration      // the pause that the provider asked for, at most 400 days; 0: none
	Handed            time.Time          // when the provider had the whole message; zero: unknown
	ProviderMessageID string             // the provider's id of the message, if it gave one; at most 255 printable bytes
	Segments          int                // of the text message that the provider was sent; 0: none
	Suppress          suppression.Reason // why nothing is to be sent to the address any more; "": nothing is known against it. The worker sets it
	Error             string             // why it was not delivered, at most 300 bytes; empty if it was
}

// Connected is a channel that keeps connections to its provider.
type Connected interface {
	// CloseIdle closes the connections that no attempt uses.
	CloseIdle()
}
