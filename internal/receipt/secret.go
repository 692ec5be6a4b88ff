package receipt

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"strings"
)

// sameSecret compares in a time that depends on neither text.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// loose is a text, or a number as it is written. Anything else is empty.
type loose string

// UnmarshalJSON reads a value.
func (l *loose) UnmarshalJSON(raw []byte) error {
	*l = ""
	var text string
	switch {
	case len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'):
		*l = loose(raw)
	case json.Unmarshal(raw, &text) == nil:
		*l = loose(strings.TrimSpace(text))
	}
	return nil
}

// firstStatus returns the first enhanced status code that is a text or begins one, or "".
func firstStatus(texts ...string) string {
	for _, text := range texts {
		if statusForm.MatchString(text) {
			return text
		}
		if found := statusIn.FindStringSubmatch(text); found != nil {
			return found[1]
		}
	}
	return ""
}
