// Package e2e runs the real programs as a user would: built, configured by
// environment and file, against real servers and a provider in its own
// process.
package e2e

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.ServeProvider(wanted)
	testenv.Overlap(4) // they wait for other processes
	testenv.Main(m, func(t testenv.T) { testenv.Finally(t, func() error { return stopChromium() }) })
}

// allOnly skips a story that proves no guarantee by itself, or that a lower layer proves too, where the run is to be short.
func allOnly(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("only `make test-all` runs this story")
	}
}

const buildVariables = "github.com/sendquota/sendquota/internal/build."

// build builds the programs once and returns their folder.
var build = sync.OnceValues(func() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("sendquota-e2e-%d-%x", os.Getuid(), sha256.Sum224([]byte(here)))) // the same for every run of a checkout, so that they do not pile up
	return dir, testenv.Build(context.Background(), dir, []string{"-ldflags", "-w -X " + buildVariables + "version=v9.9.9-e2e -X " + buildVariables + "revision=0123abc"})
})

func programs(t *testing.T) string {
	t.Helper()
	dir, err := build()
	testenv.Check(t, err)
	return dir
}

// bundle is one installation of sendquota with a provider.
type bundle struct {
	testenv.Installation
	t        *testing.T
	api      string // base URL
	provider *testenv.Provider
}

// options are the differences from the usual installation.
type options struct {
	database, redis string   // URLs of servers of its own
	config          string   // the YAML file; PROVIDER stands for the provider's address
	env             []string // of all programs, besides
}

const usualConfig = `
policy:
  rules: [{name: per-minute, limit: 1, window: 1m}, {name: per-day, limit: 3, window: 24h}]
channels:
  push: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 15s, backoff: {first: 200ms, max: 1s}}
  log: {type: log}
delivery: {lease: 30s}
http: {drain: 0s}
`

// fewConnections are as many as a program needs: each costs Postgres more than most of what is done on it.
const fewConnections = "\ndatabase: {max_connections: 8, read_connections: 2}\n"

// setup is setupWith the usual options.
func setup(t *testing.T) *bundle {
	t.Helper()
	return setupWith(t, options{})
}

// setupWith makes an installation and starts a provider. The test starts the
// programs.
func setupWith(t *testing.T, o options) *bundle {
	t.Helper()
	dir := t.TempDir()
	env := append([]string{"PUSH_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, o.env...)
	provider := testenv.StartProvider(t, dir, env...)
	i := testenv.Install(t, testenv.Config{
		Programs: programs(t), Database: o.database, Migrated: true, Redis: o.redis, Dir: dir, Env: env,
		Settings: strings.ReplaceAll(cmp.Or(o.config, usualConfig), "PROVIDER", provider.Addr) + fewConnections,
	})
	return &bundle{Installation: *i, t: t, api: "http://" + i.Addr, provider: provider}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	testenv.Check(t, os.WriteFile(path, []byte(text), 0o600))
}

// stop asks a program to stop, which must do so cleanly.
func (b *bundle) stop(p *process.Process) {
	b.t.Helper()
	testenv.Check(b.t, p.Stop(2*time.Minute))
}

// until waits for a fact.
func (b *bundle) until(fact string, holds func() bool) {
	b.t.Helper()
	testenv.Until(b.t, 50*time.Millisecond, fact, holds)
}

// beside starts another API process of the same installation, and returns the
// bundle that calls that.
func (b *bundle) beside(env ...string) *bundle {
	b.t.Helper()
	other := *b
	other.Addr = testenv.FreeAddr(b.t)
	other.api = "http://" + other.Addr
	other.Env = append(append(slices.Clone(b.Env), "SENDQUOTA_ADDR="+other.Addr), env...)
	other.StartAPI()
	return &other
}

// call sends a request and returns the status and the decoded answer.
func (b *bundle) call(method, path string, body any) (int, map[string]any) {
	b.t.Helper()
	a, err := b.ask(method, path, body)
	testenv.Check(b.t, err)
	return a.status, a.body
}

// answer is an answer of an API.
type answer struct {
	status int
	header http.Header
	body   object
}

func (a answer) String() string { return fmt.Sprint(a.status, " ", a.body) }

// httpClient closes a connection that was unused for two seconds. The API gives a new connection five seconds for its
// first header, and a POST on a connection that closes at that moment cannot be repeated.
var httpClient = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 2 * time.Second}}

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
	req.Header.Set("Authorization", "Bearer "+b.Key)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := httpClient.Do(req)
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

// repeat repeats a request that Postgres was too late for, as on a busy machine.
func (b *bundle) repeat(method, path string, body any, headers ...string) (a answer) {
	b.t.Helper()
	b.until(fmt.Sprint(method, " ", path, " is answered"), func() bool {
		var err error
		a, err = b.ask(method, path, body, headers...)
		testenv.Check(b.t, err)
		return a.status != http.StatusServiceUnavailable || !strings.Contains(fmt.Sprint(a.body["detail"]), lateDatabase)
	})
	return a
}
