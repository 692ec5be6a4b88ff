package httpapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// logged is the log line of a request.
type logged struct {
	RequestID   string   `json:"request_id"`
	Key         string   `json:"key"`
	Push        string   `json:"push"`
	Pushes      []string `json:"pushes"`
	PushesCount int      `json:"pushes_count"`
	size        int
}

// lastLogged is the last line of the log.
func (b *bundle) lastLogged() (l logged) {
	b.t.Helper()
	lines := strings.Split(strings.TrimSpace(b.log.String()), "\n")
	last := lines[len(lines)-1]
	if err := json.Unmarshal([]byte(last), &l); err != nil {
		b.t.Fatal(err)
	}
	l.size = len(last)
	return l
}

// TestRequestLog: a line names the key, and the pushes that the request made or asked for; a push remembers the request
// that made it.
func TestRequestLog(t *testing.T) {
	b := setup(t)
	key, at, id := b.keyID(), b.in(time.Hour), 0
	request := func(method, target, body string, more ...string) (reply, logged) {
		id++
		requestID := fmt.Sprint("request-", id)
		r := b.send(method, target, body, append([]string{"X-Request-Id", requestID}, more...)...)
		l := b.lastLogged()
		if l.RequestID != requestID || l.Key != key {
			t.Errorf("%s %s is logged as %+v", method, target, l)
		}
		return r, l
	}
	r, l := request("POST", "/v1/pushes", pushBody("anna", at, ""), "Idempotency-Key", "k")
	push := r.must(t, 201).at(t, "id").(string)
	if l.Push != push || r.at(t, "request_id") != "request-1" {
		t.Errorf("submit: %+v for %s", l, r.text)
	}
	r, l = request("POST", "/v1/pushes", pushBody("anna", at, ""), "Idempotency-Key", "k") // a replay
	if l.Push != push || r.must(t, 201).at(t, "request_id") != "request-1" {
		t.Errorf("replay: %+v for %s", l, r.text)
	}
	for _, row := range []struct {
		method, target, body string
		status               int
		push                 string
	}{
		{"GET", "/v1/pushes/" + push, "", 200, push},
		{"PATCH", "/v1/pushes/" + push, `{"send_at":"` + b.in(2*time.Hour) + `"}`, 200, push},
		{"PATCH", "/v1/pushes/" + push, `{}`, 422, push},
		{"POST", "/v1/pushes/" + push + "/cancel", "", 200, push},
		{"GET", "/v1/pushes/0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01", "", 404, "0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"},
		{"GET", "/v1/pushes/nonsense", "", 422, ""},
		{"POST", "/v1/pushes?validate_only=true", pushBody("bert", at, ""), 201, ""},
		{"POST", "/v1/pushes", `{}`, 422, ""},
		{"GET", "/v1/pushes", "", 200, ""},
	} {
		r, l := request(row.method, row.target, row.body)
		if r.must(t, row.status); l.Push != row.push || l.Pushes != nil {
			t.Errorf("%s %s: %+v", row.method, row.target, l)
		}
	}
	if r, _ := request("GET", "/v1/pushes/"+push, ""); r.at(t, "request_id") != "request-1" {
		t.Errorf("a push remembers %v", r.at(t, "request_id"))
	}

	for _, n := range []int{3, 1000} {
		var members, want []string
		for i := range n {
			members = append(members, pushBody(fmt.Sprintf("of-%d-%d", n, i), at, ""))
		}
		members = append(members, pushBody(fmt.Sprintf("of-%d-0", n), at, ""))[max(0, n+1-1000):] // in the small batch one is refused
		r, l := request("POST", "/v1/pushes/batch", `{"pushes":[`+strings.Join(members, ",")+`]}`)
		for _, result := range r.must(t, 200).at(t, "results").([]any) {
			if push, ok := result.(map[string]any)["push"].(map[string]any); ok {
				want = append(want, push["id"].(string))
				if push["request_id"] != l.RequestID {
					t.Errorf("a push of a batch remembers %v", push["request_id"])
				}
			}
		}
		if l.PushesCount != len(want) || !slices.Equal(l.Pushes, want[:min(20, len(want))]) || l.size > 1500 {
			t.Errorf("a batch that booked %d: %+v", len(want), l)
		}
	}
	_, l = request("POST", "/v1/pushes/batch?validate_only=true", `{"pushes":[`+pushBody("x", at, "")+`,`+pushBody("y", at, "")+`]}`)
	if l.Push != "" || l.Pushes != nil {
		t.Errorf("a batch that books nothing: %+v", l)
	}
	if r := b.send("POST", "/v1/pushes", pushBody("dora", at, ""), "X-Request-Id", "not harmless"); !isUUID(r.at(t, "request_id")) {
		t.Errorf("a bad id is kept: %s", r.text)
	}
}

func isUUID(v any) bool {
	_, err := uuid.Parse(v.(string))
	return err == nil
}

// TestRequestLog_Secrets holds what the log shows, and what it must not.
func TestRequestLog_Secrets(t *testing.T) {
	b := setup(t)
	body := pushBody("secret-recipient", b.in(time.Hour), `,"to":"secret-address"`)
	id := b.send("POST", "/v1/pushes?validate_only=false", body, "Idempotency-Key", "secret-idem").must(t, 201).at(t, "id").(string)
	b.send("GET", "/v1/pushes/"+id, "")
	b.send("GET", "/v1/recipients/secret-recipient/quota?category=secret-query", "")
	b.send("GET", "/secret-path", "")
	b.send("SECRETS", "/v1/pushes", "")
	b.send("GET", "/healthz", "")
	log := b.log.String()
	for _, want := range []string{
		`"method":"POST","route":"/v1/pushes","status":201,"duration_ms":`, `"route":"/v1/recipients/{id}/quota","status":200`,
		`"route":"unmatched","status":404`, `"method":"OTHER","route":"unmatched","status":405`, `"tenant":"` + b.tenant.String() + `","key":"` + b.keyID() + `"`, `"request_id":"`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("no %s in the log:\n%s", want, log)
		}
	}
	for _, secret := range []string{"secret", "SECRET", b.key, "Hello.", "healthz"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %q:\n%s", secret, log)
		}
	}
}
