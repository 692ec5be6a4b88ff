package channel

import (
	"encoding/json"
	"strconv"

	"github.com/sendquota/sendquota/internal/outbound"
)

// twilioAnswer reads the id of a message, and the code of an error.
func twilioAnswer(a outbound.Answer) (sid, code string) {
	var said struct {
		SID  string `json:"sid"`
		Code int    `json:"code"`
	}
	_ = json.Unmarshal(a.Body, &said) // without a code the status line stands alone
	return said.SID, strconv.Itoa(said.Code)
}

// twilioCodes returns the errors of Twilio that a message can meet when it is submitted, after
// https://www.twilio.com/docs/api/errors. Those about the recipient's number or the text are for good; those about
// the account, the sender, its permissions or its speed can be mended, and the message sent then. What becomes of a
// message after Twilio took it, 30003 and others, comes to the status callback.
func twilioCodes() map[string]meaning {
	return map[string]meaning{
		"21211": {"not a valid telephone number", true, true},
		"21214": {"the number cannot be reached", true, false},
		"21217": {"not a valid telephone number", true, true},
		"21265": {"a short code cannot receive messages", true, false},
		"21268": {"a premium number cannot receive messages", true, false},
		"21602": {"the text is empty", true, false},
		"21605": {"the text is too long", true, false},
		"21610": {"the recipient has unsubscribed from this sender", true, false},
		"21614": {"not a mobile number", true, true},
		"21617": {"the text is too long", true, false},
		"21619": {"the text is empty", true, false},
		"21635": {"a landline number cannot receive messages", true, true},

		"20003": {"the credentials are not valid", false, false},
		"20404": {"there is no such account", false, false},
		"20429": {"too many requests", false, false},
		"14107": {"the account sends too fast", false, false},
		"21212": {"the sender is not valid", false, false},
		"21408": {"the account may not send to this region", false, false},
		"21603": {"there is no sender", false, false},
		"21606": {"the sender cannot send messages", false, false},
		"21608": {"a trial account sends to verified numbers only", false, false},
		"21609": {"the status callback is not a valid URL", false, false},
		"21611": {"the sender's queue is full", false, false},
		"21612": {"this sender cannot reach this number at present", false, false},
		"21659": {"the sender is not a number of Twilio's", false, false},
		"21660": {"the sender belongs to another account", false, false},
		"21661": {"the sender cannot send messages", false, false},
		"21703": {"the messaging service has no senders", false, false},
		"21705": {"there is no such messaging service", false, false},
		"30001": {"the queue is full", false, false},
		"30002": {"the account is suspended", false, false},
		"30022": {"the sender sends too fast", false, false},
		"30023": {"the sender has reached its limit of the day", false, false},
		"63038": {"the account has reached its limit of the day", false, false},
	}
}
