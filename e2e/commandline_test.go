package e2e

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

// run runs a program to its end, with exactly this environment.
func run(t *testing.T, env []string, name string, args ...string) testenv.Output {
	t.Helper()
	i := &testenv.Installation{T: t, Config: testenv.Config{Programs: programs(t), Env: env}}
	return i.Exec(name, args...)
}

// TestCommandLine checks --version and --help of every program, and that a wrong command line has another exit status
// than a failed command.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	version := regexp.MustCompile(`^(api|worker|sendquota) v9\.9\.9-e2e \(revision 0123abc, go1\.[0-9.]+[^ ]*\)\n$`)
	for _, name := range []string{"api", "worker", "sendquota"} {
		if got := run(t, nil, name, "--version"); got.Status != 0 || !version.MatchString(got.Out) || !strings.HasPrefix(got.Out, name) {
			t.Errorf("%s --version: %+v", name, got)
		}
		if got := run(t, nil, name, "--help"); got.Status != 0 || !strings.Contains(got.Out, "--version") {
			t.Errorf("%s --help: %+v", name, got)
		}
	}
	for _, row := range []struct{ line, says string }{
		{"api nonsense", "unexpected argument nonsense"},
		{"api --nonsense", "unknown flag --nonsense"},
		{"api healthcheck x", "unexpected argument x"},
		{"worker nonsense", "unexpected argument nonsense"},
		{"worker --nonsense", "unknown flag --nonsense"},
		{"sendquota", "expected one of"},
		{"sendquota nonsense", "unexpected argument nonsense"},
		{"sendquota audit --since nonsense", `--since: "nonsense": must be a time in the form of RFC 3339, such as 2026-01-31T09:00:00Z`},
		{"sendquota audit --limit x", "--limit"},
		{"sendquota keys create", "missing flags: --tenant"},
		{"sendquota keys create --tenant a --expires 0s", "must be positive"},
		{"sendquota config", "check"},
		{"sendquota config check a b", "unexpected argument b"},
	} {
		args := strings.Fields(row.line)
		if got := run(t, nil, args[0], args[1:]...); got.Status != 2 || got.Out != "" || !strings.Contains(got.Err, row.says) || !strings.HasSuffix(got.Err, "; see "+args[0]+" --help\n") {
			t.Errorf("%s: %+v", row.line, got)
		}
	}
	if got := run(t, []string{"DATABASE_URL="}, "sendquota", "migrate"); got.Status != 1 {
		t.Errorf("a command that fails: %+v", got)
	}
}

// TestBuildInfo is in the metrics of both services.
func TestBuildInfo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.StartAPI()
	worker := b.startWatchedWorker()
	for _, at := range []string{b.api, worker.url} {
		res, err := httpClient.Get(at + "/metrics")
		testenv.Check(t, err)
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		testenv.Check(t, err)
		if want := regexp.MustCompile(`(?m)^sendquota_build_info\{goversion="go1\.[^"]+",revision="0123abc",version="v9\.9\.9-e2e"\} 1$`); !want.Match(text) {
			t.Errorf("%s has no build info:\n%s", at, text)
		}
	}
}

// TestConfigCheck says every fault of the environment, the file and the files
// that it names at once, as the services do when they start; and connects to no server.
func TestConfigCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	write(t, good, "channels: {push: {type: webhook, url: \"https://${HOST}/\"}}\n")
	write(t, bad, `delivery: {lease: 1ms}
channels:
  phone: {type: apns, key: nonsense, key_id: ABCDE12345, team_id: ABCDE12345, topic: x}
  droid: {type: fcm, credentials_file: /no/such/file}
  push: {type: webhook, url: "nonsense"}
api_limits: {per_key: [{algorithm: token_bucket, limit: 5, per: 1s}, {algorithm: token_bucket, limit: 5, per: 1s}]}
`)
	fine := []string{"DATABASE_URL=postgres://127.0.0.1:1/none", "REDIS_URL=redis://127.0.0.1:1", "HOST=example.com", "SENDQUOTA_CONFIG=" + good}
	shared := filepath.Join(t.TempDir(), "shared.yaml")
	write(t, shared, `console: {enabled: true, public_url: "https://console.example.com"}`)
	if got := run(t, fine, "sendquota", "config", "check", shared); got.Status != 0 || !strings.Contains(got.Out, "no faults") || !strings.Contains(got.Err, "warning: console.public_url is https, and api_limits.trusted_proxies is empty") {
		t.Errorf("%+v", got)
	}
	for _, row := range []struct {
		env  []string
		args []string
		out  string
		errs []string
	}{
		{fine, nil, "no faults in the settings of the environment and of " + good, nil},
		{append(fine, "SENDQUOTA_CONFIG="), nil, "no faults in the settings of the environment\n", nil},
		{append(fine, "SENDQUOTA_CONFIG="+bad), []string{good}, "and of " + good, nil},
		{append(fine, "HOST="), nil, "", []string{good + ":1: channels.push.url: the environment variable HOST is not set"}},
		{append(fine, "DATABASE_URL=", "REDIS_URL="), nil, "", []string{"DATABASE_URL: is required", "REDIS_URL: is required"}},
		{fine, []string{"/no/such.yaml"}, "", []string{`"/no/such.yaml": cannot be read`}},
		{append(fine, "DATABASE_URL=postgres://127.0.0.1:1/none?sslmode=nonsense", "SENDQUOTA_ADDR=nonsense", "SENDQUOTA_COLOUR=red"), []string{bad}, "", []string{
			`SENDQUOTA_ADDR: "nonsense": must be host:port`, "SENDQUOTA_COLOUR: is not a setting", bad + ":1: delivery.lease", bad + ":5: channels.push.url",
			"channel phone: ", "channel droid: credentials_file: open /no/such/file", "api_limits.per_key[1]: is the same limit as per_key[0]", "DATABASE_URL: has a host, a port or a parameter",
		}},
	} {
		got := run(t, row.env, "sendquota", append([]string{"config", "check"}, row.args...)...)
		if row.errs == nil {
			if got.Status != 0 || !strings.Contains(got.Out, row.out) || got.Err != "" {
				t.Errorf("%v: %+v", row.args, got)
			}
			continue
		}
		if got.Status != 1 || got.Out != "" || strings.Count(got.Err, "\n") != len(row.errs) {
			t.Errorf("%v, want %d faults: %+v", row.args, len(row.errs), got)
		}
		services := map[string]testenv.Output{"config check": got}
		env := row.env
		if row.args != nil {
			env = append(env, "SENDQUOTA_CONFIG="+row.args[0])
		}
		services["api"], services["worker"] = run(t, env, "api"), run(t, env, "worker")
		for _, want := range row.errs {
			for name, o := range services {
				if !strings.Contains(o.Err, want) {
					t.Errorf("%s does not say %q:\n%s", name, want, o.Err)
				}
			}
		}
	}
}

// TestPortInUse: the message names the setting that gives the address.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Check(t, err)
	defer l.Close()
	taken := l.Addr().String()
	for name, variable := range map[string]string{"api": "SENDQUOTA_ADDR", "worker": "SENDQUOTA_METRICS_ADDR"} {
		got := run(t, append(b.Env, variable+"="+taken), name)
		if want := fmt.Sprintf("%s: %q: another program uses this address; stop it, or set %s to another host:port\n", variable, taken, variable); got.Status != 1 || !strings.HasSuffix(got.Err, want) {
			t.Errorf("%s: %+v, want %s", name, got, want)
		}
	}
	if got := run(t, append(b.Env, "SENDQUOTA_ADDR=192.0.2.1:1"), "api"); got.Status != 1 || !strings.Contains(got.Err, `SENDQUOTA_ADDR: "192.0.2.1:1": cannot listen`) {
		t.Errorf("an address of others: %+v", got)
	}
}

// TestDatabasePassword connects with passwords that have a meaning of their own
// in a URL, to a Postgres that demands them. They are neither cut up nor told.
func TestDatabasePassword(t *testing.T) {
	allOnly(t)
	t.Parallel()
	pg := newOwnPostgres(t)
	pg.do(`ALTER ROLE service CREATEDB`)
	u, err := url.Parse(pg.URL)
	testenv.Check(t, err)
	const first, last = "HUSHone", "HUSHtwo" // of every password
	server := func(password string) string {
		return "postgres://service:" + password + "@" + u.Host + u.Path + "?sslmode=disable"
	}
	env := func(password string) []string {
		return []string{"DATABASE_URL=" + server(password), "REDIS_URL=redis://127.0.0.1:1", "SENDQUOTA_LOG_LEVEL=debug"}
	}
	b := &bundle{t: t}
	demanded := false
	for _, middle := range []string{"@", "/", "#", "?", "%", " ", ":", "@/#?% &=+:é", "/@", "?@/#", "@@//", "%zz", "+"} {
		password := first + middle + last
		quoted := "'" + strings.ReplaceAll(password, "'", "''") + "'"
		pg.do("ALTER ROLE service PASSWORD " + quoted)
		if !demanded {
			demanded = true
			pg.do("DO $$ BEGIN EXECUTE format('COPY (SELECT ''host all postgres all trust'' UNION ALL SELECT ''host all all all scram-sha-256'') TO %L', current_setting('hba_file')); END $$; SELECT pg_reload_conf()")
			b.until("a password is demanded", func() bool { return run(t, env("wrong"), "sendquota", "tenants", "list").Status != 0 })
		}
		for form, written := range map[string]string{"as it is": password, "encoded": url.QueryEscape(strings.ReplaceAll(password, " ", "\x00"))} {
			written = strings.ReplaceAll(written, "%00", "%20")
			if got := run(t, env(written), "sendquota", "tenants", "list"); got.Status != 0 {
				t.Errorf("%q %s: %+v", password, form, got)
			}
		}
	}
	// Every program reports the error without the password.
	for _, password := range []string{first, first + "/@" + last + "%41", first + "%41@" + last, "12/" + first + "@x", "12?" + first + "=@" + last, first + "\n" + last, first + "/x?y=@" + last} {
		for _, command := range []string{"sendquota migrate", "sendquota tenants list", "sendquota audit", "sendquota config check", "sendquota dev --dir " + t.TempDir(), "api healthcheck"} {
			args := strings.Fields(command)
			if strings.HasPrefix(command, "sendquota dev") { // it ignores DATABASE_URL
				args = append(args, "--database-url", server(password), "--redis-url", "redis://127.0.0.1:1")
			}
			got := run(t, append(env(password), "SENDQUOTA_ADDR="+testenv.FreeAddr(t)), args[0], args[1:]...)
			if got.Status == 0 && command != "sendquota config check" || strings.Contains(got.Out+got.Err, "HUSH") {
				t.Errorf("%s with %q: %+v", command, password, got)
			}
		}
	}
}
