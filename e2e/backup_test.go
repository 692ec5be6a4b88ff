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

// shellIn runs commands in a folder, which must succeed, and returns what they print.
func shellIn(t *testing.T, dir, block string, env ...string) string {
	t.Helper()
	cmd := exec.Command("bash", "-e", "-u", "-o", "pipefail", "-c", block)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestBackup_Restore follows docs/operations.md: a dump of a busy database becomes a new database. The programs run on
// it, and send nothing twice.
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
		return shellIn(t, dir, block, "PATH="+postgres+":"+programs(t)+":"+os.Getenv("PATH"), "DATABASE_URL="+pg.URL, "RESTORED_URL="+u.String())
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
	// This is sent after the dump, because no worker runs before.
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

// TestBackup_RolesAsDocumented follows docs/operations.md with the roles of docs/databases.md, none of which may create
// a database. It restores everything, and the programs run on it.
func TestBackup_RolesAsDocumented(t *testing.T) {
	t.Parallel()
	postgres, err := devstack.PostgresPrograms()
	testenv.Check(t, err)
	pg := testenv.OwnPostgres(t)
	as := func(user, password, database string) string {
		u, err := url.Parse(pg.URL)
		testenv.Check(t, err)
		if u.Path = "/" + database; user != "" {
			u.User = url.UserPassword(user, password)
		}
		return u.String()
	}
	const restored = "sendquota_restored"
	admin, owner, role := as("", "", "postgres"), as("sendquota_owner", "OWNER_PASSWORD", "sendquota"), as("sendquota", "PASSWORD", "sendquota")
	for _, statement := range []string{"DROP DATABASE sendquota", "CREATE DATABASE sendquota ENCODING 'UTF8' TEMPLATE template0"} {
		testenv.Exec(t, admin, statement)
	}
	page, err := os.ReadFile("../docs/databases.md")
	testenv.Check(t, err)
	_, rest, _ := strings.Cut(string(page), "```sql\n")
	roles, _, _ := strings.Cut(rest, "```")
	testenv.Exec(t, as("", "", "sendquota"), roles)
	dir, path := t.TempDir(), "PATH="+postgres+":"+programs(t)+":"+os.Getenv("PATH")
	shellIn(t, dir, "sendquota migrate", path, "DATABASE_URL="+owner)

	lost := setupWith(t, options{database: role})
	api, worker := lost.StartAPI(), lost.Start("worker")
	submit := func(b *bundle, recipient string, in time.Duration) string {
		t.Helper()
		status, push := b.call("POST", "/v1/pushes", object{"recipient": recipient, "message": object{"title": "x"}, "send_at": time.Now().Add(in).UTC().Format(time.RFC3339)})
		if status != http.StatusCreated {
			t.Fatalf("%d %v", status, push)
		}
		return push["id"].(string)
	}
	is := func(b *bundle, id, status string) bool {
		_, got := b.call("GET", "/v1/pushes/"+id, nil)
		return got["status"] == status
	}
	if status, said := lost.call("PUT", "/v1/recipients/anna", object{"attributes": object{"name": "Anna"}}); status != http.StatusCreated {
		t.Fatalf("%d %v", status, said)
	}
	sent, waits := submit(lost, "anna", 0), submit(lost, "bert", time.Hour)
	lost.until("a push is sent", func() bool { return is(lost, sent, "sent") })
	lost.stop(worker)
	lost.stop(api)
	before := rowsOf(t, owner)
	shellIn(t, dir, commands(t, "backup"), path, "DATABASE_URL="+role)
	env := []string{path, "ADMIN_URL=" + admin, "DATABASE_URL=" + owner, "RESTORED_URL=" + as("sendquota_owner", "OWNER_PASSWORD", restored)}
	_, others, _ := strings.Cut(commands(t, "restore"), "\n")
	said := shellIn(t, dir, commands(t, "restore without createdb")+others, env...)
	if !strings.Contains(said, "the database is up to date\n") || !strings.Contains(said, "no violations\n") {
		t.Errorf("restoring says %q", said)
	}
	if after := rowsOf(t, as("sendquota_owner", "OWNER_PASSWORD", restored)); after != before {
		t.Errorf("the rows of the tables are\n%s\nand were\n%s", after, before)
	}
	b := *lost
	b.Env = append(append([]string{}, lost.Env...), "DATABASE_URL="+as("sendquota", "PASSWORD", restored), "REDIS_URL="+testenv.Redis(t))
	b.StartAPI()
	b.Start("worker")
	fresh := submit(&b, "fresh", 0)
	b.until("the restored installation sends", func() bool { return is(&b, fresh, "sent") })
	if !is(&b, sent, "sent") || !is(&b, waits, "scheduled") {
		t.Error("a push has another status after the restore")
	}
	b.wantAudited()
}

// rowsOf has a line with the number of rows of each table of a database.
func rowsOf(t *testing.T, database string) string {
	t.Helper()
	tables := testenv.Query[string](t, database, `SELECT string_agg(oid::regclass::text, ' ' ORDER BY oid::regclass::text) FROM pg_class
		WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'sendquota'::regnamespace`)
	var lines []string
	for table := range strings.FieldsSeq(tables) {
		lines = append(lines, table+" "+testenv.Query[string](t, database, "SELECT count(*)::text FROM "+table))
	}
	return strings.Join(lines, "\n")
}
