package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPolicyTool checks a policy in a file, previews its effect, and puts it in force for all programs; a worker
// applies it to existing bookings.
func TestPolicyTool(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.StartAPI()
	other := b.beside()
	b.Start("worker")
	first := time.Now().UTC().Add(2 * time.Hour).Truncate(time.Second)
	submit := func(b *bundle, recipient string, at time.Time) (int, object) {
		t.Helper()
		return b.call("POST", "/v1/pushes", object{"recipient": recipient, "send_at": at.Format(time.RFC3339), "message": object{}})
	}
	var ids []string
	for i := range 3 {
		status, p := submit(b, "anna", first.Add(time.Duration(i)*2*time.Minute))
		if status != http.StatusCreated {
			t.Fatal(status, p)
		}
		ids = append(ids, p["id"].(string))
	}
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "bad.yaml")
	write(t, good, "# kept in git\nrules:\n  - {name: hour, limit: 1, window: 1h}\ndefault_zone: Asia/Kathmandu\n")
	write(t, bad, "rules:\n  - {name: hour, limit: 1, window: 1h, per: day}\ndefault_zone: Asia/Katmandoo\n")

	if o := b.Exec("sendquota", "policy", "check", good); o.Status != 0 || !strings.Contains(o.Out, "no faults") {
		t.Errorf("check: %+v", o)
	}
	for _, args := range [][]string{{"check", bad}, {"apply", bad, "--tenant", "acme"}, {"apply", bad, "--tenant", "acme", "--forecast"}} {
		o := b.Exec("sendquota", append([]string{"policy"}, args...)...)
		if o.Status != 1 || !strings.Contains(o.Err, bad+":2: rules[0].per") || !strings.Contains(o.Err, bad+":3: default_zone") || !strings.Contains(o.Err, "Asia/Kat") {
			t.Errorf("%v: %+v", args, o)
		}
	}
	if o := b.Exec("sendquota", "policy", "apply", good, "--tenant", "acme", "--forecast"); o.Status != 3 || !strings.Contains(o.Out, "2 waiting pushes do not fit\n  hour: 2\n"+ids[1]) {
		t.Errorf("forecast: %+v", o)
	}
	if o := b.Exec("sendquota", "policy", "apply", good, "--tenant", "acme", "--forecast", "--json"); !strings.Contains(o.Out, `"conflicts":2`) {
		t.Errorf("forecast: %+v", o)
	}
	if o := b.Exec("sendquota", "policy", "apply", good, "--tenant", "acme", "--if-version", "3"); o.Status != 1 || !strings.Contains(o.Err, "version 0 is in force") {
		t.Errorf("stale: %+v", o)
	}
	for _, args := range [][]string{{"show"}, {"apply", good}, {"apply", good, "--tenant", "acme", "--apply", "all"}, {"check"}} {
		if o := b.Exec("sendquota", append([]string{"policy"}, args...)...); o.Status != 2 {
			t.Errorf("%v: %+v", args, o)
		}
	}
	if o := b.Exec("sendquota", "policy", "show", "--tenant", "nobody"); o.Status != 1 || !strings.Contains(o.Err, "there is no tenant") {
		t.Errorf("no tenant: %+v", o)
	}

	if out := b.Tool("policy", "apply", good, "--tenant", "acme", "--apply", "reslot", "--if-version", "0"); !strings.Contains(out, "version 1 is in force for tenant acme\noperation ") {
		t.Errorf("apply: %s", out)
	}
	for i, program := range []*bundle{b, other} {
		if status, refusal := submit(program, "anna", first.Add(30*time.Minute)); status != http.StatusConflict || !strings.Contains(fmt.Sprint(refusal["violations"]), "rule:hour") {
			t.Errorf("program %d: %d %v", i, status, refusal)
		}
	}
	for i, id := range ids {
		want := first.Add(time.Duration(i) * time.Hour).Format(time.RFC3339)
		b.until("push "+fmt.Sprint(i)+" has its next free time", func() bool {
			_, p := b.call("GET", "/v1/pushes/"+id, nil)
			return p["send_at"] == want && p["status"] == "scheduled"
		})
	}

	// Its output can be applied again.
	shown := b.Exec("sendquota", "policy", "show", "--tenant", "acme")
	if !strings.Contains(shown.Err, "version 1: the tenant's own policy") || !strings.Contains(shown.Out, "window: 1h") || !strings.Contains(shown.Out, "Asia/Kathmandu") {
		t.Errorf("show: %+v", shown)
	}
	again := filepath.Join(dir, "again.yaml")
	write(t, again, shown.Out)
	if o := b.Exec("sendquota", "policy", "apply", again, "--tenant", "acme", "--forecast"); o.Status != 0 || !strings.Contains(o.Out, "0 waiting pushes do not fit") {
		t.Errorf("forecast of what it shows: %+v", o)
	}
	if out := b.Tool("policy", "show", "--tenant", "acme", "--json"); !strings.Contains(out, `"default_zone": "Asia/Kathmandu"`) {
		t.Errorf("show: %s", out)
	}
	_, versions := b.call("GET", "/v1/policy/versions", nil)
	if got := versions["versions"].([]any)[0].(object)["by"]; got != "sendquota" {
		t.Errorf("stored by %v", got)
	}
}
