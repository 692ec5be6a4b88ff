package frame

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// TestSignInFirst_Form: a form that was sent when the session had ended leads back to its page, and to no other site.
func TestSignInFirst_Form(t *testing.T) {
	t.Parallel()
	for referer, want := range map[string]string{
		"http://example.com/console/pushes/new?tz=utc": SignInPath + "?lost=yes&to=%2Fconsole%2Fpushes%2Fnew%3Ftz%3Dutc",
		"http://evil.example/console/now":              SignInPath + "?lost=yes",
		"":                                             SignInPath + "?lost=yes",
	} {
		r := httptest.NewRequest("POST", "http://example.com/console/pushes/new", strings.NewReader("recipient=anna"))
		r.Header.Set("Referer", referer)
		rec := httptest.NewRecorder()
		signInFirst(rec, r)
		if got := rec.Header().Get("Location"); got != want {
			t.Errorf("from %q it leads to %s, want %s", referer, got, want)
		}
	}
}
