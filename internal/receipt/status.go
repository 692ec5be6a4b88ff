package receipt

import "regexp"

// statusForm is the form of enhanced status codes of failures (RFC 3463).
var statusForm = regexp.MustCompile(`^[45]\.[0-9]{1,3}\.[0-9]{1,3}$`)

// statusIn finds an enhanced status code at the beginning of a reply, behind its three digits.
var statusIn = regexp.MustCompile(`^\s*(?:[45][0-9]{2}[ -])?\s*#?([45]\.[0-9]{1,3}\.[0-9]{1,3})\b`)

// statusCodes returns the enhanced status codes of mail servers (RFC 3463, its registry at the IANA, and the codes of
// Exchange Online). An x stands for any number: the class is 4 or 5, and other details of a subject have its row.
func statusCodes() map[string]meaning {
	return map[string]meaning{
		"5.1.1":   {"there is no such mailbox", hard},
		"5.1.2":   {"there is no such domain", hard},
		"5.1.3":   {"not a valid address", hard},
		"5.1.6":   {"the mailbox has moved", hard},
		"5.1.10":  {"there is no such recipient, or its domain takes no mail", hard},
		"5.2.1":   {"the mailbox is disabled", hard},
		"5.4.4":   {"there is no such domain, or it takes no mail", hard},
		"5.4.310": {"there is no such domain", hard},

		"x.1.x": {"the address was refused", soft},
		"x.1.7": {"the sender's address was refused", soft},
		"x.1.8": {"the sender's domain was refused", soft},
		"x.2.x": {"the mailbox cannot take it", soft},
		"x.2.1": {"the mailbox takes no mail at present", soft},
		"x.2.2": {"the mailbox is full", soft},
		"x.2.3": {"the message is too large for the mailbox", soft},
		"x.3.x": {"the mail system cannot take it", soft},
		"x.3.4": {"the message is too large", soft},
		"x.4.x": {"the mail server could not be reached", soft},
		"x.4.1": {"the mail server does not answer", soft},
		"x.4.6": {"the mail goes round in a loop", soft},
		"x.4.7": {"it could not be delivered in time", soft},
		"x.5.x": {"the mail servers do not understand each other", soft},
		"x.6.x": {"the content was refused", soft},
		"x.7.x": {"the sender or the content was refused", soft},
		"x.x.x": {"the mail server reports no reason", soft},
	}
}

// statusMeaning returns the meaning of an enhanced status code. Anything else has the last row.
func statusMeaning(status string) meaning {
	codes := statusCodes()
	if !statusForm.MatchString(status) {
		return codes["x.x.x"]
	}
	anyClass := "x" + status[1:]
	subject := anyClass[:len(anyClass)-len(lastNumber(anyClass))] + "x"
	for _, code := range []string{status, anyClass, subject} {
		if m, known := codes[code]; known {
			return m
		}
	}
	return codes["x.x.x"]
}

var lastDigits = regexp.MustCompile(`[0-9]+$`)

func lastNumber(s string) string { return lastDigits.FindString(s) }
