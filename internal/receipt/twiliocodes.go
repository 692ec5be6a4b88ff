package receipt

import "strings"

// twilioStatuses returns the statuses of messages that have ended.
//
// https://www.twilio.com/docs/messaging/api/message-resource#message-status-values
func twilioStatuses() map[string]meaning {
	return map[string]meaning{
		"delivered":   {"it arrived at the handset", delivered},
		"read":        {"the recipient has opened it", delivered},
		"undelivered": {"the carrier did not deliver it", undelivered},
		"failed":      {"Twilio did not send it", undelivered},
		"canceled":    {"it was canceled at Twilio", undelivered},
	}
}

// twilioCodes returns the errors in callbacks of undelivered and failed messages. A code that is not listed is
// undelivered.
//
// https://www.twilio.com/docs/api/errors
func twilioCodes() map[string]meaning {
	return map[string]meaning{
		"30005": {"the number is not in use", hard},
		"30006": {"a landline number, or its carrier cannot be reached", hard},
		"21211": {"not a valid telephone number", hard},
		"21217": {"not a valid telephone number", hard},
		"21614": {"not a mobile number", hard},
		"21635": {"a landline number cannot receive messages", hard},

		"30003": {"the handset cannot be reached at present", soft},

		"21610": {"the recipient has unsubscribed from this sender", stopped},

		"30001": {"the queue is full", undelivered},
		"30002": {"the account is suspended", undelivered},
		"30004": {"the carrier or the recipient blocks it", undelivered},
		"30007": {"the carrier has filtered it", undelivered},
		"30008": {"the carrier reports no reason", undelivered},
		"30009": {"a part of the message is missing", undelivered},
		"30010": {"it costs more than the maximum price", undelivered},
		"30011": {"the number's network takes no media messages", undelivered},
		"30017": {"the carrier's network is congested", undelivered},
		"30019": {"the carrier takes no message of this size", undelivered},
		"30022": {"the sender sends too fast", undelivered},
		"30023": {"the sender has reached its limit of the day", undelivered},
		"30024": {"the carrier does not know the sender", undelivered},
		"30032": {"the toll-free sender is not verified", undelivered},
		"30034": {"the sender is not registered", undelivered},
		"30035": {"the sender is being set up", undelivered},
		"30036": {"its validity period has ended", undelivered},
		"30410": {"the carrier did not answer in time", undelivered},
		"30450": {"Twilio suspects fraud with this destination", undelivered},
		"30500": {"the carrier reports an error", undelivered},
		"63038": {"the account has reached its limit of the day", undelivered},
	}
}

// keywords maps words that are a whole message to their meaning.
var keywords = map[string]Keyword{
	"STOP": StopKeyword, "STOPALL": StopKeyword, "UNSUBSCRIBE": StopKeyword, "CANCEL": StopKeyword,
	"END": StopKeyword, "QUIT": StopKeyword, "REVOKE": StopKeyword, "OPTOUT": StopKeyword,
	"START": StartKeyword, "YES": StartKeyword, "UNSTOP": StartKeyword,
	"HELP": HelpKeyword, "INFO": HelpKeyword,
}

// optOutTypes maps Twilio's own reading of a message, which knows keywords in other languages.
var optOutTypes = map[string]Keyword{"STOP": StopKeyword, "START": StartKeyword, "HELP": HelpKeyword}

// keyword returns the meaning of a text.
func keyword(optOutType, text string) Keyword {
	if k, known := optOutTypes[strings.ToUpper(strings.TrimSpace(optOutType))]; known {
		return k
	}
	return keywords[strings.ToUpper(strings.TrimRight(strings.TrimSpace(text), ". \t\r\n"))]
}
