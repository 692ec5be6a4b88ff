package channel

import (
	"encoding/json"
	"strings"

	"github.com/sendquota/sendquota/internal/outbound"
)

// twilioAnswer reads the id of a message, and the code of an error.
func twilioAnswer(a outbound.Answer) (sid, code string) {
	var said struct {
		SID  string          `json:"sid"`
		Code json.RawMessage `json:"code"` // a number, or one as string
	}
	_ = json.Unmarshal(a.Body, &said) // without a code, the status line counts
	return said.SID, strings.TrimSpace(idText(said.Code))
}

// twilioCodes returns the errors of Twilio for a submitted message, after https://www.twilio.com/docs/api/errors.
// Errors about the recipient's number or the text are permanent. Errors about the account, the sender, its permissions
// or its speed can be mended, and the message sent then. Errors after Twilio took a message, 30003 and others, go to
// the status callback.
func twilioCodes() map[string]meaning {
	return map[string]meaning{
		"21211": {"not a valid telephone number", unregistered},
		"21214": {"the number cannot be reached", closedAddress},
		"21217": {"not a valid telephone number", unregistered},
		"21265": {"a short code cannot receive messages", closedAddress},
		"21268": {"a premium number cannot receive messages", closedAddress},
		"21602": {"the text is empty", permanent},
		"21605": {"the text is too long", permanent},
		"21610": {"the recipient has unsubscribed from this sender", stopped},
		"21614": {"not a mobile number", unregistered},
		"21617": {"the text is too long", permanent},
		"21619": {"the text is empty", permanent},
		"21635": {"a landline number cannot receive messages", unregistered},

		"20003": {"the credentials are not valid", temporary},
		"20404": {"there is no such account", temporary},
		"20429": {"too many requests", temporary},
		"14107": {"too many messages to this number", busyAddress},
		"21212": {"the sender is not valid", temporary},
		"21408": {"the account may not send to this region", temporary},
		"21603": {"there is no sender", temporary},
		"21606": {"the sender cannot send messages", temporary},
		"21608": {"a trial account sends to verified numbers only", temporary},
		"21609": {"the status callback is not a valid URL", temporary},
		"21611": {"the sender's queue is full", temporary},
		"21612": {"this sender cannot reach this number at present", temporary},
		"21659": {"the sender is not a number of Twilio's", temporary},
		"21660": {"the sender belongs to another account", temporary},
		"21661": {"the sender cannot send messages", temporary},
		"21703": {"the messaging service has no senders", temporary},
		"21705": {"there is no such messaging service", temporary},
		"30001": {"the queue is full", temporary},
		"30002": {"the account is suspended", temporary},
		"30022": {"the sender sends too fast", temporary},
		"30023": {"the sender has reached its limit of the day", temporary},
		"63038": {"the account has reached its limit of the day", temporary},
	}
}
