package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type object = map[string]any

// TestPush_SubmitToSent is the main story: a push for a future second is
// accepted, a second one for the same minute is refused, the first leaves when
// its second has come, and is recorded.
func TestPush_SubmitToSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	api, worker := b.startAPI(), b.startWorker()
	if out, err := b.health(); err != nil {
		t.Fatalf("healthcheck: %v\n%s", err, out)
	}

	due := time.Now().UTC().Add(3 * time.Second).Truncate(time.Second)
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
	b.until("the push is sent", func() bool {
		_, got = b.call("GET", path, nil)
		return got["status"] == "sent"
	})
	send := got["sends"].([]any)[0].(object)
	if send["outcome"] != "delivered" || send["provider_message_id"] != "provider-"+got["id"].(string) {
		t.Errorf("recorded: %v", send)
	}
	all := b.taken()
	once(t, all, 1)
	if late := all[0].At.Sub(due); late < 0 {
		t.Errorf("it left %s before its second", -late)
	}
	if out := b.tool("audit"); out != "no violations\n" {
		t.Errorf("audit: %s", out)
	}
	b.stop(worker)
	b.stop(api)
	for _, p := range []*program{api, worker} {
		for _, private := range []string{"secret title", "anna", "+4512345678", b.key, "whsec_"} {
			if strings.Contains(p.log.String(), private) {
				t.Errorf("the log of %s shows %q", p.cmd.Path, private)
			}
		}
	}
}

// health runs bin/api healthcheck.
func (b *bundle) health() (string, error) {
	cmd := exec.Command(filepath.Join(b.bin, "api"), "healthcheck")
	cmd.Env = b.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestWorker_StoppedWhileSending stops workers while they send, again and again.
func TestWorker_StoppedWhileSending(t *testing.T) {
	t.Parallel()
	const pushes = 600
	b := setup(t)
	b.startAPI()
	var members []object
	for i := range pushes {
		members = append(members, object{"recipient": fmt.Sprintf("r%d", i), "message": object{}})
	}
	if status, answer := b.call("POST", "/v1/pushes/batch", object{"pushes": members}); status != http.StatusOK || answer["accepted"] != float64(pushes) {
		t.Fatalf("batch: %d %v", status, answer)
	}
	for n := 0; n < pushes; {
		before := len(b.taken())
		worker := b.startWorker()
		b.until("the worker sends", func() bool {
			n = len(b.taken())
			return n > before || n == pushes
		})
		b.stop(worker)
		n = len(b.taken())
	}
	once(t, b.taken(), pushes)
	_, answer := b.call("GET", "/v1/pushes?page_size=500&status=sent", nil)
	if got := len(answer["pushes"].([]any)); got != 500 || answer["next_page_token"] == "" {
		t.Errorf("recorded: %d, next page %q", got, answer["next_page_token"])
	}
	if out := b.tool("audit", "--json"); out != `{"violations":[]}`+"\n" {
		t.Errorf("audit: %s", out)
	}
}

// TestSettings_BadAreReported wants every fault named, with what is allowed.
func TestSettings_BadAreReported(t *testing.T) {
	t.Parallel()
	b := setup(t)
	file := filepath.Join(t.TempDir(), "bad.yaml")
	write(t, file, "policy:\n  rules: [{name: a, limit: -1, window: 1m}]\nchanels: {}\n")
	b.env = append(b.env, "SENDQUOTA_CONFIG="+file, "SENDQUOTA_LOG_LEVEL=verbose", "SENDQUOTA_COLOUR=red")
	for _, name := range []string{"api", "worker"} {
		cmd := exec.Command(filepath.Join(b.bin, name))
		cmd.Env = b.env
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Fatalf("%s started", name)
		}
		for _, want := range []string{file + ":2", file + ":3", "chanels", "-1", "verbose", "debug, info, warn", "SENDQUOTA_COLOUR"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s does not say %q:\n%s", name, want, out)
			}
		}
	}
}
