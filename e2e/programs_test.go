// Package e2e runs the real programs as a user would: built, configured by
// environment and file, against real servers and a provider in its own
// process.
package e2e

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv("E2E_PROVIDER"); addr != "" {
		provide(addr, os.Getenv("E2E_JOURNAL"))
		return
	}
	// The tests wait for other processes more than they compute.
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue {
		_ = flag.Set(p.Name, "6")
	}
	testenv.Main(m)
}

const buildVariables = "github.com/sendquota/sendquota/internal/build."

// build builds the programs once and returns their folder.
var build = sync.OnceValues(func() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("sendquota-e2e-%d-%x", os.Getuid(), sha256.Sum224([]byte(here)))) // the same for every run of a checkout, so that they do not pile up
	out, err := exec.Command("go", "build", "-ldflags", "-X "+buildVariables+"version=v9.9.9-e2e -X "+buildVariables+"revision=0123abc", "-o", dir+"/", "../cmd/...").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return dir, nil
})

// bundle is one installation of sendquota.
type bundle struct {
	t       *testing.T
	bin     string
	env     []string
	api     string // base URL
	key     string
	journal string // what the provider took
}

// options are what differs from the usual installation.
type options struct {
	database, redis string   // URLs of servers of its own
	config          string   // the YAML file; PROVIDER stands for the provider's address
	env             []string // of all programs, besides
}

const usualConfig = `
policy:
  rules: [{name: per-minute, limit: 1, window: 1m}, {name: per-day, limit: 3, window: 24h}]
channels:
  push: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 5s, backoff: {first: 200ms, max: 1s}}
  log: {type: log}
delivery: {lease: 10s}
http: {drain: 0s}
`

// setup is setupWith the usual options.
func setup(t *testing.T) *bundle {
	t.Helper()
	return setup(t)
}

// setupWith migrates a database, makes a tenant with a key, and starts a
// provider. The services are started by the test.
func setupWith(t *testing.T, o options) *bundle {
	t.Helper()
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	if o.database == "" {
		o.database = testenv.Postgres(t)
	}
	if o.redis == "" {
		o.redis = testenv.Redis(t)
	}
	dir := t.TempDir()
	addr, provider := freeAddr(t), freeAddr(t)
	b := &bundle{t: t, bin: bin, api: "http://" + addr, journal: filepath.Join(dir, "journal")}
	file := filepath.Join(dir, "sendquota.yaml")
	write(t, file, strings.ReplaceAll(cmp.Or(o.config, usualConfig), "PROVIDER", provider))
	b.env = append(os.Environ(), "DATABASE_URL="+o.database, "REDIS_URL="+o.redis, "SENDQUOTA_ADDR="+addr,
		"SENDQUOTA_CONFIG="+file, "PUSH_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	b.env = append(b.env, o.env...)

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b.start(exec.Command(self), "E2E_PROVIDER="+provider, "E2E_JOURNAL="+b.journal)
	b.tool("migrate")
	b.tool("tenants", "create", "acme")
	b.key = strings.TrimSpace(b.tool("keys", "create", "--tenant", "acme"))
	return b
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tool runs bin/sendquota and returns its standard output.
func (b *bundle) tool(args ...string) string {
	b.t.Helper()
	cmd := exec.Command(filepath.Join(b.bin, "sendquota"), args...)
	cmd.Env = b.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("sendquota %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// program is a running process.
type program struct {
	cmd    *exec.Cmd
	exited chan error
	log    *testenv.Buffer
}

// start starts a command; it is killed when the test ends.
func (b *bundle) start(cmd *exec.Cmd, env ...string) *program {
	b.t.Helper()
	p := &program{cmd: cmd, exited: make(chan error, 1), log: &testenv.Buffer{}}
	cmd.Env = append(append([]string{}, b.env...), env...)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() { p.exited <- cmd.Wait() }()
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if b.t.Failed() {
			b.t.Logf("%s said:\n%s", filepath.Base(cmd.Path), p.log.String())
		}
	})
	return p
}

func (b *bundle) startWorker() *program {
	return b.start(exec.Command(filepath.Join(b.bin, "worker")))
}

// startAPI starts the API and waits until it is ready.
func (b *bundle) startAPI() *program {
	b.t.Helper()
	p := b.start(exec.Command(filepath.Join(b.bin, "api")))
	b.until("the API is ready", func() bool {
		res, err := http.Get(b.api + "/readyz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return p
}

// stop asks a program to stop and wants it to do so cleanly.
func (b *bundle) stop(p *program) {
	b.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.exited:
		if err != nil {
			b.t.Fatalf("%s did not stop cleanly: %v\n%s", p.cmd.Path, err, p.log.String())
		}
	case <-time.After(2 * time.Minute):
		b.t.Fatalf("%s did not stop", p.cmd.Path)
	}
}

// until waits for a fact.
func (b *bundle) until(fact string, holds func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited in vain: %s", fact)
		}
	}
}

// beside starts another API process of the same installation, and returns the
// bundle that calls that.
func (b *bundle) beside(env ...string) *bundle {
	b.t.Helper()
	other, addr := *b, freeAddr(b.t)
	other.api = "http://" + addr
	other.env = append(append(slices.Clone(b.env), "SENDQUOTA_ADDR="+addr), env...)
	other.startAPI()
	return &other
}

// call sends a request and returns the status and the decoded answer.
func (b *bundle) call(method, path string, body any) (int, map[string]any) {
	b.t.Helper()
	a, err := b.ask(method, path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	return a.status, a.body
}

// answer is what an API said.
type answer struct {
	status int
	header http.Header
	body   object
}

func (a answer) String() string { return fmt.Sprint(a.status, " ", a.body) }

var client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// ask is call for any goroutine, and with headers: names and values by turns.
func (b *bundle) ask(method, path string, body any, headers ...string) (answer, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, b.api+path, reader)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+b.key)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	a := answer{status: res.StatusCode, header: res.Header}
	if err := json.NewDecoder(res.Body).Decode(&a.body); err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return a, nil
}
