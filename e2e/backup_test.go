package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/testenv"
)

// commands is the block of commands in docs/operations.md behind a mark.
func commands(t *testing.T, mark string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	testenv.Check(t, err)
	_, rest, found := strings.Cut(string(text), "<!-- "+mark+": a test runs these commands. -->\n```bash\n")
	block, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatalf("docs/operations.md has no block %s", mark)
	}
	return block
}

// TestBackup_Restore does what docs/operations.md says: a dump of a database at
// work becomes a new database, on which the programs run, and which sends
// nothing again.
func TestBackup_Restore(t *testing.T) {
	allOnly(t)
	t.Parallel()
	postgres, err := devstack.PostgresPrograms()
	testenv.Check(t, err)
	pg := testenv.OwnPostgres(t)
	u, err := url.Parse(pg.URL)
	testenv.Check(t, err)
	u.Path = "/sendquota_restored"
	dir := t.TempDir()
	shell := func(block string) string {
		t.Helper()
		cmd := exec.Command("bash", "-e", "-u", "-o", "pipefail", "-c", block)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+postgres+":"+programs(t)+":"+os.Getenv("PATH"), "DATABASE_URL="+pg.URL, "RESTORED_URL="+u.String())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}

	lost := setupWith(t, options{database: pg.URL})
	api, worker := lost.StartAPI(), lost.Start("worker")
	submit := func(b *bundle, recipient string, in time.Duration) object {
		t.Helper()
		status, push := b.call("POST", "/v1/pushes", object{"recipient": recipient, "message": object{"title": "x"}, "send_at": time.Now().Add(in).UTC().Format(time.RFC3339)})
		if status != http.StatusCreated {
			t.Fatalf("%d %v", status, push)
		}
		return push
	}
	get := func(b *bundle, push object) object {
		_, got := b.call("GET", "/v1/pushes/"+push["id"].(string), nil)
		return got
	}
	var before []object
	for i := range 20 {
		before = append(before, submit(lost, fmt.Sprint("before-", i), 0))
	}
	lost.until("the first are sent", func() bool {
		return get(lost, before[0])["status"] == "sent" && len(lost.provider.Arrivals()) == len(before)
	})
	canceled := submit(lost, "canceled", time.Hour)
	if status, _ := lost.call("POST", "/v1/pushes/"+canceled["id"].(string)+"/cancel", nil); status != http.StatusOK {
		t.Fatal(status)
	}
	future := submit(lost, "future", time.Hour)
	// What is sent after the dump: no worker runs that could do it before.
	lost.stop(worker)
	between := submit(lost, "between", 0)
	shell(commands(t, "backup"))
	worker = lost.Start("worker")
	lost.until("what was scheduled during the dump is sent", func() bool { return get(lost, between)["status"] == "sent" })
	lost.stop(worker)
	lost.stop(api)
	sent := len(lost.provider.Arrivals())

	said := shell(commands(t, "restore"))
	for _, want := range []string{"the database is up to date\n", "UPDATE 1\n", "no violations\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("restoring says %q, which lacks %q", said, want)
		}
	}
	b := *lost
	b.Env = append(append([]string{}, lost.Env...), "DATABASE_URL="+u.String(), "REDIS_URL="+testenv.Redis(t))
	b.StartAPI()
	b.Start("worker")
	fresh := submit(&b, "fresh", 0)
	b.until("the restored installation sends", func() bool { return get(&b, fresh)["status"] == "sent" })
	b.until("what is too late expires", func() bool { return get(&b, between)["status"] == "expired" })
	for push, want := range map[string]string{before[0]["id"].(string): "sent", canceled["id"].(string): "canceled", future["id"].(string): "scheduled"} {
		if _, got := b.call("GET", "/v1/pushes/"+push, nil); got["status"] != want {
			t.Errorf("a push that was %s is %v", want, got)
		}
	}
	if status, refused := b.call("POST", "/v1/pushes", object{"recipient": "future", "message": object{}, "send_at": future["send_at"]}); status != http.StatusConflict {
		t.Errorf("a place that is taken is given again: %d %v", status, refused)
	}
	once(t, b.provider.Arrivals(), sent+1)
	b.wantAudited()
}
