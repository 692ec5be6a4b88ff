package receipt

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/outbound"
)

// FetchWith returns the body of a 200, and follows no redirect.
func TestFetchWith_Answers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/cert.pem":
			if r.Method != http.MethodGet || r.ContentLength > 0 {
				t.Errorf("%s with %d bytes", r.Method, r.ContentLength)
			}
			w.Write(snsPEM())
		case "/moved":
			http.Redirect(w, r, "/cert.pem", http.StatusFound)
		case "/drop":
			panic(http.ErrAbortHandler)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	client := outbound.New(outbound.Config{Timeout: time.Minute, AllowPrivateAddresses: true})
	defer client.Close()
	fetch := FetchWith(client)
	for path, ok := range map[string]bool{"/cert.pem": true, "/moved": false, "/drop": false, "/missing": false, "\n": false} {
		text, err := fetch(t.Context(), server.URL+path)
		if (err == nil) != ok || ok && string(text) != string(snsPEM()) {
			t.Errorf("%q: %v, %d bytes", path, err, len(text))
		}
	}
	public := outbound.New(outbound.Config{Timeout: time.Minute})
	defer public.Close()
	if _, err := FetchWith(public)(t.Context(), server.URL+"/cert.pem"); err == nil {
		t.Error("a private address is fetched")
	}
}
