package channel

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzProviderID holds that an id from an answer is printable and short, and is
// in the answer.
func FuzzProviderID(f *testing.F) {
	for _, seed := range []string{`{"id":"m-1"}`, `{"message_id":12345678901234567890}`, `{"id":null,"message_id":"x"}`, `{"id":["x"]}`, `{"id":"` + strings.Repeat("é", 300) + `"}`, `{"id":"a\nb\u0000"}`, `[`, ``, `{"id":-0.5e3}`, "{\"id\":\"\xff\"}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		id := providerID(body)
		if len(id) > maxProviderID || !utf8.ValidString(id) || strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q", id)
		}
		if id != "" && !json.Valid(body) {
			t.Errorf("%q from what is no JSON", id)
		}
	})
}
