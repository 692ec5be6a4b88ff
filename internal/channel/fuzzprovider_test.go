package channel

import (
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/push"
)

// FuzzProviderAnswers holds that no body of an answer breaks a channel, nor
// gets into the reason of a failure.
func FuzzProviderAnswers(f *testing.F) {
	for _, body := range []string{"", "{}", "[]", `{"code":21211}`, `{"code":"x","sid":1}`, `{"reason":"Unregistered"}`, fcmError("NOT_FOUND", "UNREGISTERED"), `{"error":{"details":[null,1]}}`, `{"name":"\u0000"}`} {
		f.Add(200, body)
		f.Add(400, body)
		f.Add(410, body)
	}
	providers := []struct {
		read  func(outbound.Answer) (id, code string)
		codes map[string]meaning
	}{{twilioAnswer, twilioCodes()}, {fcmAnswer, fcmCodes()}, {apnsAnswer, apnsReasons()}}
	f.Fuzz(func(t *testing.T, status int, body string) {
		a := outbound.Answer{Status: status, Header: http.Header{}, Body: []byte(body)}
		for _, provider := range providers {
			plain := classify(a, testNow())
			id, code := provider.read(a)
			r := plain.refined(id, code, provider.codes)
			byCode := plain.Outcome == push.Unknown && r.Outcome == push.Refused && strings.Contains(r.Error, plain.Error+", ")
			if r.Outcome != plain.Outcome && !byCode || r.Unregistered && !r.Final || r.Final && r.Outcome != push.Refused {
				t.Errorf("%+v, by its status %+v", r, plain)
			}
			if len(r.Error) > maxError || len(r.ProviderMessageID) > maxProviderID || strings.ContainsFunc(r.Error+r.ProviderMessageID, func(c rune) bool { return !unicode.IsPrint(c) }) {
				t.Errorf("%+v", r)
			}
			if rest := strings.TrimPrefix(r.Error, "unregistered: "); !strings.HasPrefix(rest, plain.Error) {
				t.Errorf("the reason is %q, by the status it is %q", r.Error, plain.Error)
			}
		}
	})
}
