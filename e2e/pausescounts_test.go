package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestPauses_Counts pauses a channel with many due pushes: the channels, the status, the tool and the metrics count what waits under the pause,
// and say that sending is paused. The tool lists the pauses and resumes by id, and warns of a category that does not exist.
func TestPauses_Counts(t *testing.T) {
	t.Parallel()
	b := setupWith(t, options{config: pausesToolConfig})
	b.StartAPI()
	out := b.Tool("pause", "--tenant", "acme", "--channel", "push", "--reason", "wrong prices")
	if !strings.HasPrefix(out, "paused channel push of tenant acme") {
		t.Fatal(out)
	}
	b.Start("worker")
	const many = 60
	for i := range many {
		b.sends(fmt.Sprint("user-", i), "news", true)
	}
	b.until("all are parked", func() bool {
		return testenv.Query[int](t, b.Database, `SELECT count(*) FROM live WHERE pause_id IS NOT NULL`) == many
	})
	b.until("the channel and the status show it", func() bool {
		_, channels := b.call(http.MethodGet, "/v1/channels", nil)
		_, status := b.call(http.MethodGet, "/v1/status", nil)
		push := channels["channels"].([]any)[0].(object)
		return push["state"] == "paused" && push["paused"] == float64(many) && push["waiting"] == 0.0 && status["waiting"].(object)["paused"] == float64(many)
	})
	if out := b.Tool("status", "--tenant", "acme"); !strings.Contains(out, "PAUSED") || !strings.Contains(out, fmt.Sprint(many, " ")) {
		t.Error(out)
	}
	if out := b.Tool("channels", "list", "--tenant", "acme"); !strings.Contains(out, "paused") || !strings.Contains(out, fmt.Sprint(many)) {
		t.Error(out)
	}
	b.until("the metrics show it", func() bool {
		a, err := httpClient.Get(b.api + "/metrics")
		if err != nil {
			return false
		}
		defer a.Body.Close()
		text, _ := io.ReadAll(a.Body)
		return strings.Contains(string(text), fmt.Sprintf("sendquota_paused_pushes{channel=\"push\"} %d\n", many)) && strings.Contains(string(text), "sendquota_paused_pushes{channel=\"(tenant)\"} 0\n") &&
			strings.Contains(string(text), "sendquota_channel_rejected_ratio{channel=\"(tenant)\"} 0\n")
	})

	warned := b.Exec("sendquota", "pause", "--tenant", "acme", "--category", "nwes")
	if warned.Status != 0 || !strings.Contains(warned.Err, "warning: no policy and no push has the category nwes so far; the nearest name is news") {
		t.Errorf("a typo: %+v", warned)
	}
	b.Tool("pause", "--all-tenants", "--channel", "push")
	var list struct{ Pauses []object }
	if err := json.Unmarshal([]byte(b.Tool("pauses", "--tenant", "acme", "--json")), &list); err != nil || len(list.Pauses) != 3 {
		t.Fatalf("%v: %v", err, list)
	}
	if out := b.Tool("pauses"); strings.Count(out, "\n") != 2 || !strings.Contains(out, "all tenants") {
		t.Errorf("the operator's: %s", out)
	}
	if out := b.Tool("pauses", "--tenant", "acme"); strings.Count(out, "\n") != 4 || !strings.Contains(out, "wrong prices") || !strings.Contains(out, "nwes") {
		t.Errorf("of the tenant: %s", out)
	}
	theirs := list.Pauses[0]["id"].(string)
	if got := b.Exec("sendquota", "resume", "--tenant", "acme", theirs); got.Status != 1 || !strings.Contains(got.Err, "of all tenants") {
		t.Errorf("the operator's pause as the tenant's: %+v", got)
	}
	for _, p := range list.Pauses {
		if out := b.Tool("resume", p["id"].(string)); !strings.HasPrefix(out, "resumed ") {
			t.Error(out)
		}
	}
	if out := b.Tool("resume", theirs); out != "no pause with the id "+theirs+" is in force\n" {
		t.Error(out)
	}
	if got := b.Exec("sendquota", "resume", "x", "--all"); got.Status != 2 || !strings.Contains(got.Err, "must be the id of a pause") || !strings.Contains(got.Err, "either an id, or") {
		t.Errorf("%+v", got)
	}
	b.until("all are sent", func() bool {
		return testenv.Query[int](t, b.Database, `SELECT count(*) FROM pushes WHERE status = 'sent'`) == many
	})
	b.wantAudited()
}
