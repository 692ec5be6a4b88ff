package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/process"
)

type object = map[string]any

// TestPush_SubmitToSent is the main story: a push for a future second is
// accepted, a second one for the same minute is refused, the first leaves when
// its second has come, and is recorded.
func TestPush_SubmitToSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	api, worker := b.StartAPI(), b.Start("worker")
	if o := b.Exec("api", "healthcheck"); o.Status != 0 {
		t.Fatalf("healthcheck: %+v", o)
	}

	due := time.Now().UTC().Add(2 * time.Second).Truncate(time.Second)
	push := object{"recipient": "anna", "send_at": due.Format(time.RFC3339), "message": object{"title": "secret title"}, "to": "+4512345678"}
	status, first := b.call("POST", "/v1/pushes", push)
	if status != http.StatusCreated || first["status"] != "scheduled" {
		t.Fatalf("submit: %d %v", status, first)
	}
	status, second := b.call("POST", "/v1/pushes", push)
	if status != http.StatusConflict || second["next_available_at"] != due.Add(time.Minute).Format(time.RFC3339) {
		t.Fatalf("second submit: %d %v", status, second)
	}

	path := "/v1/pushes/" + first["id"].(string)
	var got object
	b.until("the message is sent", func() bool {
		_, got = b.call("GET", path, nil)
		return got["status"] == "sent"
	})
	send := got["sends"].([]any)[0].(object)
	if send["outcome"] != "delivered" || send["provider_message_id"] != "provider-"+got["id"].(string) {
		t.Errorf("recorded: %v", send)
	}
	all := b.provider.Arrivals()
	once(t, all, 1)
	if late := all[0].At.Sub(due); late < 0 {
		t.Errorf("it left %s before its second", -late)
	}
	b.wantAudited()
	b.stop(worker)
	b.stop(api)
	for _, p := range []*process.Process{api, worker} {
		for _, private := range []string{"secret title", "anna", "+4512345678", b.Key, "whsec_"} {
			if strings.Contains(p.Log(), private) {
				t.Errorf("the log of %s shows %q", p.Name, private)
			}
		}
	}
}

// TestWorker_StoppedWhileSending stops workers while they send, again and again.
func TestWorker_StoppedWhileSending(t *testing.T) {
	t.Parallel()
	const pushes = 600
	b := setup(t)
	b.StartAPI()
	b.submitAll("push", pushes, time.Now())
	for n := 0; n < pushes; {
		before := len(b.provider.Arrivals())
		worker := b.Start("worker")
		b.until("the worker sends", func() bool {
			n = len(b.provider.Arrivals())
			return n > before || n == pushes
		})
		b.stop(worker)
		n = len(b.provider.Arrivals())
	}
	once(t, b.provider.Arrivals(), pushes)
	_, answer := b.call("GET", "/v1/pushes?page_size=500&status=sent", nil)
	if got := len(answer["pushes"].([]any)); got != 500 || answer["next_page_token"] == "" {
		t.Errorf("recorded: %d, next page %q", got, answer["next_page_token"])
	}
	if out := b.Tool("audit", "--json"); out != `{"violations":[]}`+"\n" {
		t.Errorf("audit: %s", out)
	}
}
