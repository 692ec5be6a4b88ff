package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// audit runs bin/sendquota audit and returns what it prints on its two outputs,
// and its exit status.
func (b *bundle) audit(args ...string) (out, said string, code int) {
	b.t.Helper()
	o := b.Exec("sendquota", append([]string{"audit"}, args...)...)
	return o.Out, o.Err, o.Status
}

// TestAudit_Corruption breaks a rule by hand, thirty times.
func TestAudit_Corruption(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setup(t)
	b.StartAPI()
	at := time.Now().UTC().Add(time.Hour).Truncate(time.Second)
	var members []object
	for i := range 60 {
		members = append(members, object{"recipient": fmt.Sprint("anna ", i/2), "message": object{}, "send_at": at.Add(time.Duration(i%2) * time.Hour).Format(time.RFC3339)})
	}
	if status, answer := b.call("POST", "/v1/pushes/batch", object{"pushes": members}); status != http.StatusOK || answer["accepted"] != float64(60) {
		t.Fatalf("batch: %d %v", status, answer)
	}
	if out, said, code := b.audit(); out != "no violations\n" || said != "" || code != 0 {
		t.Errorf("before: %q, %q, %d", out, said, code)
	}
	testenv.Forge(t, b.Database)
	b.sql(`UPDATE pushes SET send_at = send_at - interval '1 hour' + interval '30 seconds', next_at = send_at WHERE send_at > now() + interval '90 minutes'`)

	out, said, code := b.audit("--json")
	var report struct {
		Violations []struct{ Check, Recipient, Tenant, Push, Detail string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Violations) != 30 || code != 1 || said != "30 violations\n" {
		t.Fatalf("audit --json: %s, %s, %d, %v", out, said, code, err)
	}
	for _, v := range report.Violations {
		if v.Check != "promised-window" || !strings.HasPrefix(v.Recipient, "anna ") || v.Tenant == "" || v.Push == "" || !strings.Contains(v.Detail, "per-minute") {
			t.Errorf("%+v", v)
		}
	}

	for flags, want := range map[string]struct {
		lines int
		last  string
	}{
		"":                                   {21, "promised-window: and 10 more; --json or --limit 0 prints all"},
		"--limit=29":                         {30, "promised-window: and 1 more; --json or --limit 0 prints all"},
		"--limit=0":                          {30, "(rule per-minute)"},
		"--since=" + at.Format(time.RFC3339): {21, "promised-window: and 10 more; --json or --limit 0 prints all"},
		"--since=" + at.Add(31*time.Second).Format(time.RFC3339): {1, "no violations"},
	} {
		out, _, _ := b.audit(strings.Fields(flags)...)
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if len(lines) != want.lines || !strings.HasSuffix(lines[len(lines)-1], want.last) {
			t.Errorf("audit %s: %d lines, the last one %s", flags, len(lines), lines[len(lines)-1])
		}
	}
}

// TestAudit_WithoutPostgres says so, and nothing on standard output.
func TestAudit_WithoutPostgres(t *testing.T) {
	allOnly(t)
	t.Parallel()
	env := []string{"DATABASE_URL=postgres://nobody@127.0.0.1:1/none?sslmode=disable"}
	for _, flag := range []string{"--limit=1", "--json"} {
		if o := run(t, env, "sendquota", "audit", flag); o.Out != "" || o.Err == "" || o.Status != 2 {
			t.Errorf("audit %s: %+v", flag, o)
		}
	}
}

// TestAudit_WorkerMetrics and show what they found in their metrics.
func TestAudit_WorkerMetrics(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setup(t)
	addr := testenv.FreeAddr(t)
	b.Env = append(b.Env, "SENDQUOTA_METRICS_ADDR="+addr)
	b.configure("delivery: {lease: 30s}", "delivery: {lease: 30s, audit_interval: 100ms}")
	b.StartAPI()
	b.Start("worker")
	at := time.Now().UTC().Add(time.Hour).Truncate(time.Second).Format(time.RFC3339)
	if status, answer := b.call("POST", "/v1/pushes", object{"recipient": "anna", "message": object{}, "send_at": at}); status != http.StatusCreated {
		t.Fatalf("submit: %d %v", status, answer)
	}
	shows := func(line string) func() bool {
		return func() bool {
			res, err := http.Get("http://" + addr + "/metrics")
			if err != nil {
				return false
			}
			defer res.Body.Close()
			text, _ := io.ReadAll(res.Body)
			return strings.Contains(string(text), line)
		}
	}
	b.until("an audit finds nothing", shows(`sendquota_audit_violations{check="recipient-key"} 0`+"\n"))
	testenv.Forge(t, b.Database)
	b.sql(`UPDATE pushes SET recipient_key = 1`)
	b.until("an audit finds the violation", shows(`sendquota_audit_violations{check="recipient-key"} 1`+"\n"))
	b.until("it says when", shows("sendquota_audit_last_success_timestamp_seconds 1."))
}

// configure changes the services' file.
func (b *bundle) configure(old, changed string) {
	b.t.Helper()
	for _, v := range b.Env {
		if path, ok := strings.CutPrefix(v, "SENDQUOTA_CONFIG="); ok {
			text, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(text), old) {
				b.t.Fatalf("%s has no %q (%v)", path, old, err)
			}
			write(b.t, path, strings.Replace(string(text), old, changed, 1))
		}
	}
}
