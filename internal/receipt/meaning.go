package receipt

import (
	"regexp"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/outbound"
)

// meaning is the meaning of a provider's code.
type meaning struct {
	text string // in our own words
	kind kind
}

// kind is the consequence of a report.
type kind int

const (
	ignored          kind = iota // says nothing about the end of the message
	delivered                    // arrived
	undelivered                  // was not sent, or not delivered
	soft                         // bounced; the address may work later
	hard                         // bounced; the address does not exist
	complained                   // was marked as spam
	stopped                      // did not arrive, because the recipient has sent STOP
	unsubscribed                 // the recipient has unsubscribed at the provider
	dropUnsubscribed             // did not arrive, because the recipient has unsubscribed at the provider
	dropComplained               // did not arrive, because the recipient has complained before
)

const (
	maxCode    = 40  // bytes
	maxAddress = 320 // bytes: 64 before the @, and 255 behind it
)

// codeForm is the form of codes that are shown without being known.
var codeForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._/-]*$`)

// receipts returns the receipt of a meaning, or none if it says nothing about the end of the message.
func (m meaning) receipts(push uuid.UUID, code, address string, at time.Time) []Receipt {
	r := Receipt{Push: push, At: settled(at), Reason: m.text, Address: outbound.Printable(address, maxAddress)}
	if len(code) <= maxCode && codeForm.MatchString(code) {
		r.Code = code
	}
	switch m.kind {
	case delivered:
		r.State, r.Reason = Delivered, ""
	case undelivered:
		r.State = Undelivered
	case soft:
		r.State = Bounced
	case hard:
		r.State, r.Hard, r.Suppress = Bounced, true, HardBounce
	case complained:
		r.State, r.Suppress = Complained, Complaint
	case stopped:
		r.State, r.Suppress = Undelivered, Stop
	case unsubscribed:
		r.Unsubscribed = true
	case dropUnsubscribed:
		r.State, r.Unsubscribed = Undelivered, true
	case dropComplained:
		r.State, r.Suppress = Undelivered, Complaint
	default:
		return nil
	}
	return []Receipt{r}
}

// settled returns a time in UTC, or zero if no provider can mean it.
func settled(at time.Time) time.Time {
	if at.Year() < 2000 || at.Year() > 2100 {
		return time.Time{}
	}
	return at.UTC()
}

// seconds returns the time of a Unix timestamp.
func seconds(s float64) time.Time {
	if !(s > 0 && s < 1e11) {
		return time.Time{}
	}
	whole := int64(s)
	return time.Unix(whole, int64((s-float64(whole))*1e9)).Round(time.Millisecond)
}

// instant parses a time of RFC 3339.
func instant(s string) time.Time {
	at, _ := time.Parse(time.RFC3339, s) // zero: unknown
	return at
}
