package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

// callersConfig lets each key and each address make few requests.
const callersConfig = `
channels: {log: {type: log}}
api_limits:
  per_key: [{algorithm: sliding_log, limit: 5, per: 1h}]
  per_ip: [{algorithm: fixed_window, limit: 1000, per: 8760h}]
  trusted_proxies: [127.0.0.1]
`

// TestCallerLimits_AllProcesses: a key has five requests, wherever it
// asks and whatever it says about its address.
func TestCallerLimits_AllProcesses(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: callersConfig})
	b.StartAPI()
	other := b.beside()
	var codes []int
	for i := range 8 {
		through := []*bundle{b, other}[i%2]
		a, err := through.ask(http.MethodGet, "/v1/pushes", nil, "X-Forwarded-For", "198.51.100."+string(rune('1'+i)))
		testenv.Check(t, err)
		codes = append(codes, a.status)
		policy, standing := a.header.Get("RateLimit-Policy"), a.header.Get("RateLimit")
		if policy != `"per-ip";q=1000;w=31536000, "per-key";q=5;w=3600` || !strings.Contains(standing, `"per-ip";r=`) || !strings.Contains(standing, `"per-key";r=`) {
			t.Errorf("policy %s, standing %s", policy, standing)
		}
		if a.status == http.StatusTooManyRequests && (a.body["type"] != "urn:sendquota:problem:rate-limited" || a.header.Get("Retry-After") == "") {
			t.Errorf("%v %v", a, a.header)
		}
	}
	for i, code := range codes {
		if want := map[bool]int{true: 200, false: 429}[i < 5]; code != want {
			t.Errorf("answers %v", codes)
			break
		}
	}
}
