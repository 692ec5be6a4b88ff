package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

var (
	refusedForGood = booking.Finish{Outcome: push.Refused, Error: "bad", Resolution: push.Resolution{Status: push.Failed, Reason: "bad"}}
	neverAnswered  = booking.Finish{Outcome: push.Unknown, Error: "reset", Resolution: push.Resolution{Status: push.Failed, Reason: "no answer"}}
	wasDelivered   = booking.Finish{Outcome: push.Delivered, Resolution: push.Resolution{Status: push.Sent}}
)

// due is a push of anna's that is due now.
func (b *bundle) due(more string) (id string) {
	b.t.Helper()
	return b.send("POST", "/v1/pushes", pushBody("anna", b.in(0), more)).must(b.t, 201).at(b.t, "id").(string)
}

// TestRetry goes the way of a push that fails, again and again.
func TestRetry(t *testing.T) {
	b := setup(t)
	b.send("POST", "/v1/webhooks", `{"url":"https://example.com/","events":["push.scheduled"]}`).must(t, 201)
	first := b.due(`,"channel":"sms","category":"c","to":"+45 1","metadata":{"a":1}`)
	path := "/v1/pushes/" + first
	b.send("POST", path+"/retry", "").must(t, 409, "not-retryable")
	b.attempt("anna", refusedForGood)
	before := b.send("GET", path, "").text

	// It is booked again, as it was.
	rows := b.marks()
	asked := b.send("POST", path+"/retry?validate_only=true", "").must(t, 201)
	if asked.header.Get("Location") != "" || asked.at(t, "retry_of") != first || b.marks() != rows {
		t.Errorf("a question: %v %s", asked.header, asked.text)
	}
	second := b.send("POST", path+"/retry", "").must(t, 201)
	id := second.at(t, "id").(string)
	if second.header.Get("Location") != "/v1/pushes/"+id || id == first {
		t.Errorf("Location %q", second.header.Get("Location"))
	}
	for name, want := range map[string]any{
		"retry_of": first, "status": "scheduled", "recipient": "anna", "channel": "sms", "category": "c", "to": "+45 1",
		"message": map[string]any{"body": "Hello."}, "metadata": map[string]any{"a": 1.0}, "attempts": 0.0, "possibly_delivered": false, "campaign": nil,
	} {
		if diff := cmp.Diff(want, second.at(t, name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if len(second.at(t, "quota").([]any)) != 3 {
		t.Errorf("quota: %s", second.text)
	}
	if got := b.send("GET", path, "").text; got != before {
		t.Errorf("the push became %s", got)
	}
	if got := b.send("GET", "/v1/pushes/"+id, "").must(t, 200); got.at(t, "retry_of") != first {
		t.Errorf("read: %s", got.text)
	}
	if got := b.send("GET", "/v1/pushes?recipient=anna&status=scheduled", "").must(t, 200); got.at(t, "pushes", 0, "retry_of") != first {
		t.Errorf("listed: %s", got.text)
	}

	// However often that is asked for, it is booked once.
	for _, headers := range [][]string{nil, {"Idempotency-Key", "k1"}} {
		for _, ask := range []string{"", "?validate_only=true"} {
			if again := b.send("POST", path+"/retry"+ask, `{"send_at":"`+b.in(time.Hour)+`"}`, headers...).must(t, 200); again.at(t, "id") != id {
				t.Errorf("another one: %s", again.text)
			}
		}
	}
	b.send("POST", "/v1/pushes/"+id+"/retry", "").must(t, 409, "not-retryable")

	// It may go to another week, and is still what it is.
	b.send("PATCH", "/v1/pushes/"+id, `{"send_at":"`+b.in(30*24*time.Hour)+`"}`).must(t, 200)
	if moved := b.send("POST", path+"/retry", "").must(t, 200); moved.at(t, "id") != id || moved.at(t, "retry_of") != first {
		t.Errorf("moved: %s", moved.text)
	}
	b.send("PATCH", "/v1/pushes/"+id, `{"send_at":"`+b.in(0)+`"}`).must(t, 200)

	// One whose outcome is unknown can be followed by another one, which says so. It is one family: whichever member is retried.
	b.attempt("anna", neverAnswered)
	third := b.send("POST", "/v1/pushes/"+id+"/retry", "").must(t, 201)
	if third.at(t, "retry_of") != id || third.at(t, "possibly_delivered") != true {
		t.Errorf("after an unknown outcome: %s", third.text)
	}
	if again := b.send("POST", path+"/retry", "").must(t, 200); again.at(t, "id") != third.at(t, "id") || again.at(t, "possibly_delivered") != true {
		t.Errorf("of the first push: %s", again.text)
	}
	b.send("POST", "/v1/pushes/"+third.at(t, "id").(string)+"/cancel", "").must(t, 200)
	b.send("POST", "/v1/pushes/"+third.at(t, "id").(string)+"/retry", "").must(t, 409, "not-retryable")
	fourth := b.send("POST", path+"/retry", "").must(t, 201)
	if fourth.at(t, "retry_of") != first || fourth.at(t, "possibly_delivered") != true {
		t.Errorf("after a canceled one: %s", fourth.text)
	}

	// Webhooks hear of each as of any push, and of nothing else.
	told := query[[]string](b, `SELECT array_agg(concat_ws(' ', payload->'data'->>'retry_of', payload->'data'->>'possibly_delivered')) FROM webhook_deliveries`)
	want := []string{"false", first + " false", first + " false", first + " false", id + " true", first + " true"} // one was moved twice
	slices.Sort(told)
	slices.Sort(want)
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}

	// One that was sent is the last.
	b.attempt("anna", wasDelivered)
	for _, of := range []string{first, id} {
		if last := b.send("POST", "/v1/pushes/"+of+"/retry", "").must(t, 200); last.at(t, "id") != fourth.at(t, "id") || last.at(t, "status") != "sent" {
			t.Errorf("sent: %s", last.text)
		}
	}
}

// TestRetry_Concurrent: of retries at the same moment, of a push and of its former retry, one is booked.
func TestRetry_Concurrent(t *testing.T) {
	b := setup(t)
	first := b.due("")
	b.attempt("anna", refusedForGood)
	second := b.send("POST", "/v1/pushes/"+first+"/retry", "").must(t, 201).at(t, "id").(string)
	b.attempt("anna", refusedForGood)
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		made int
		ids  = map[any]bool{}
	)
	for i := range 16 {
		all.Go(func() {
			answer := b.send("POST", "/v1/pushes/"+[]string{first, second}[i%2]+"/retry", `{"send_at":"`+b.in(time.Duration(i/8)*time.Hour)+`"}`)
			mu.Lock()
			defer mu.Unlock()
			if ids[answer.at(t, "id")] = true; answer.status == http.StatusCreated {
				made++
			} else if answer.status != http.StatusOK {
				t.Errorf("%d %s", answer.status, answer.text)
			}
		})
	}
	all.Wait()
	if made != 1 || len(ids) != 1 {
		t.Errorf("%d were booked: %v", made, ids)
	}
}

// TestRetry_Quota: a retry needs a place like any other push, and its key makes it once.
func TestRetry_Quota(t *testing.T) {
	b := setup(t)
	first := b.due("")
	b.attempt("anna", refusedForGood)
	path := "/v1/pushes/" + first + "/retry"
	b.send("POST", "/v1/pushes", pushBody("anna", b.in(30*time.Second), "")).must(t, 201)
	rows := b.marks()
	for range 3 { // the third time, the cache is asked, too
		b.send("POST", path, "").must(t, 409, "quota-exceeded")
	}
	if diff := cmp.Diff(rows, b.marks()); diff != "" {
		t.Errorf("a refused retry left %s", diff)
	}
	body := `{"on_conflict":"defer","latest":"` + b.in(time.Hour) + `"}`
	deferred := b.send("POST", path, body, "Idempotency-Key", "k1").must(t, 201)
	if deferred.at(t, "deferred") != true {
		t.Errorf("deferred: %s", deferred.text)
	}
	again := b.send("POST", path, body, "Idempotency-Key", "k1").must(t, 201)
	if again.at(t, "id") != deferred.at(t, "id") || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("repeated: %v %s", again.header, again.text)
	}
	b.send("POST", path, "", "Idempotency-Key", "k1").must(t, 422, "idempotency-key-reused")
	b.send("POST", "/v1/pushes", pushBody("bert", b.in(0), ""), "Idempotency-Key", "k1").must(t, 422, "idempotency-key-reused")
	b.send("PUT", "/v1/recipients/anna", `{"opt_outs":{"all":true}}`).must(t, 201)
	b.send("POST", path, "").must(t, 409, "opted-out")
}

// TestRetry_Expiry: a retry lives as long as its push did, or until the time that the caller had fixed, if that is ahead.
func TestRetry_Expiry(t *testing.T) {
	for _, row := range []struct {
		name, fixed, body string // expires_at of the push; of the retry
		want              time.Duration
	}{
		{"the default one", "", "", 24 * time.Hour},
		{"a fixed one that is ahead", "2h", `{"send_at":"1h"}`, 2 * time.Hour},
		{"a fixed one that is not behind the send time", "2h", `{"send_at":"3h"}`, 5 * time.Hour},
		{"another one", "2h", `{"expires_at":"4h"}`, 4 * time.Hour},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := setup(t)
			begun := b.now().UTC().Truncate(time.Second)
			at := func(text string) string {
				for _, d := range []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour} {
					text = strings.ReplaceAll(text, `"`+strings.TrimSuffix(d.String(), "0m0s")+`"`, `"`+begun.Add(d).Format(time.RFC3339)+`"`)
				}
				return text
			}
			more := `,"send_at":"` + begun.Format(time.RFC3339) + `"`
			if row.fixed != "" {
				more += at(`,"expires_at":"` + row.fixed + `"`)
			}
			id := b.send("POST", "/v1/pushes", `{"recipient":"anna","message":{"body":"x"}`+more+`}`).must(t, 201).at(t, "id").(string)
			b.attempt("anna", refusedForGood)
			got, err := time.Parse(time.RFC3339, b.send("POST", "/v1/pushes/"+id+"/retry", at(row.body)).must(t, 201).at(t, "expires_at").(string))
			if late := got.Sub(begun.Add(row.want)); err != nil || late < 0 || late > 0 && row.fixed != "" || late > time.Minute {
				t.Errorf("it expires at %s, want %s", got, begun.Add(row.want))
			}
		})
	}
}

// TestRetry_Faults: the answer lists every error, and no tenant retries the push of another.
func TestRetry_Faults(t *testing.T) {
	b := setup(t)
	id := b.due("")
	b.attempt("anna", refusedForGood)
	path := "/v1/pushes/" + id + "/retry"
	rows := b.marks()
	wrong := b.send("POST", path+"?validate_only=yes&x=1", `{"send_at":"2020-01-01T00:00:00Z","time_zone":"UTC","message":{},"on_conflict":"x"}`, "Idempotency-Key", strings.Repeat("k", 256)).must(t, 422, "invalid-request")
	for _, at := range []string{"query.validate_only", "query.x", "header.Idempotency-Key", "body.send_at", "body.time_zone", "body.message", "body.on_conflict"} {
		if !strings.Contains(wrong.text, `"`+at+`"`) {
			t.Errorf("nothing of %s: %s", at, wrong.text)
		}
	}
	b.send("POST", path, `{`).must(t, 400, "invalid-request")
	b.send("POST", "/v1/pushes/x/retry", "").must(t, 422, "invalid-request")
	b.send("POST", "/v1/pushes/0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01/retry", "").must(t, 404, "not-found")
	b.send("POST", path, "", "Authorization", "Bearer "+b.other).must(t, 404, "not-found")
	_, reader := b.newTenant("reader", push.ScopeRead)
	b.send("POST", path, "", "Authorization", "Bearer "+reader).must(t, 403, "forbidden")
	b.exec(`UPDATE pushes SET channel = 'gone'`)
	gone := b.send("POST", path, "").must(t, 422, "invalid-request")
	if gone.at(t, "errors", 0, "location") != "path.id" || !strings.Contains(gone.text, "whose channel") {
		t.Errorf("a channel that there is no more: %s", gone.text)
	}
	b.exec(`UPDATE pushes SET channel = 'push'`)
	if diff := cmp.Diff(rows, b.marks()); diff != "" {
		t.Errorf("faults left %s", diff)
	}
	b.send("DELETE", "/v1/recipients/anna", "").must(t, 200)
	b.send("POST", path, "").must(t, 404, "not-found")
}
