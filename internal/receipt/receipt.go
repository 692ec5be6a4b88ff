package receipt

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// MaxBody is the maximum size of the body of a request, in bytes. A longer one is refused.
const MaxBody = 256 << 10

// ErrRefused means that a request is not proven, too large or not readable. It is answered with 403, and changes nothing.
// Its text contains nothing of the request.
var ErrRefused = errors.New("the callback is refused")

// ErrUnavailable means that a request could not be checked for now, because a certificate could not be fetched. It is
// answered with 503, so that the provider repeats it.
var ErrUnavailable = errors.New("the callback cannot be checked for now")

// Request is a provider's request, as it was received.
type Request struct {
	URL    string // the public one, with its query, in the spelling of the request line
	Header http.Header
	Body   []byte
}

// Reader proves and reads the requests of one channel. It is safe for concurrent use. Errors are [ErrRefused] or
// [ErrUnavailable], with an explanation.
type Reader interface {
	Read(ctx context.Context, r Request) (Report, error)
}

// Report is the content of a request. It may be empty.
type Report struct {
	Receipts []Receipt // of our messages only
	Foreign  int       // the number of reports about messages that are not ours
	Inbound  *Inbound  // nil: none
	Confirm  string    // a URL of SNS: a GET of it confirms the subscription
}

// State is the state of a message after a provider took it.
type State string

// The states of messages.
const (
	Delivered   State = "delivered"
	Undelivered State = "undelivered" // the provider did not send it, or a carrier did not deliver it
	Bounced     State = "bounced"     // the address, or its mail server, does not take it
	Complained  State = "complained"  // the recipient marked it as spam
)

var ranks = map[State]int{Undelivered: 1, Delivered: 2, Bounced: 3, Complained: 4}

// Over reports whether the state replaces another one: complained, bounced, delivered, undelivered, none.
func (s State) Over(other State) bool { return ranks[s] > ranks[other] }

// The reasons for suppressing an address.
const (
	HardBounce = "hard_bounce"
	Complaint  = "complaint"
	Stop       = "stop"
)

// Receipt is a report about one message and one address.
type Receipt struct {
	Push         uuid.UUID // from our message; never nil
	Attempt      int       // 0: not known
	State        State     // "": only Unsubscribed
	Hard         bool      // of a bounce: the address does not exist
	Suppress     string    // HardBounce, Complaint or Stop; "": nothing to suppress
	Unsubscribed bool      // the recipient has unsubscribed at the provider: end the topic of the push
	At           time.Time // by the provider, in UTC; zero: unknown
	Code         string    // at most 40 bytes; may be empty
	Reason       string    // one of our own texts; may be empty
	Address      string    // as the provider writes it; "": unknown
}

// Keyword is the meaning of an inbound message.
type Keyword string

// The keywords.
const (
	NoKeyword    Keyword = ""
	StopKeyword  Keyword = "stop"
	StartKeyword Keyword = "start"
	HelpKeyword  Keyword = "help"
)

// Inbound is a message to us.
type Inbound struct {
	ID             string // the provider's; the same if the request is repeated
	From, To, Text string
	Keyword        Keyword
}

// refused returns an ErrRefused with an explanation.
func refused(why string) error { return fmt.Errorf("%w: %s", ErrRefused, why) }

// check refuses a body that is too large.
func (r Request) check() error {
	if len(r.Body) > MaxBody {
		return refused("the body is larger than 256 KiB")
	}
	return nil
}

// add adds receipts, or counts them if the message is not ours.
func (r *Report) add(receipts ...Receipt) {
	for _, one := range receipts {
		if one.Push == uuid.Nil {
			r.Foreign++
			continue
		}
		r.Receipts = append(r.Receipts, one)
	}
}
