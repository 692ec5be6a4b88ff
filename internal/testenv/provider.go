package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sendquota/sendquota/internal/process"
)

// Arrival is a request that came to a Provider.
type Arrival struct {
	Push, Recipient, Key string
	Attempt              int
	At                   time.Time // when the request had been read
	Own                  bool      // to the URL of a tenant's channel, which has ?own
	Signed               bool      // with the secret of the variable PUSH_SECRET
	Message              json.RawMessage
	Does                 string // how it was treated; see Behaviours
	Taken                bool   // whether the recipient has the push, whatever the answer says
}

// Provider is a push provider in a process of its own: this program, started once more. It records each request on disk
// before it answers.
type Provider struct {
	*process.Process
	Addr string

	t       T
	journal string
	env     []string
	lives   int
}

// providerVariable tells a process that it is a provider, and its address.
const providerVariable = "TESTENV_PROVIDER"

// StartProvider starts a provider that keeps its journal and its log in a folder.
// Its program calls ServeProvider first.
func StartProvider(t T, dir string, env ...string) *Provider {
	t.Helper()
	p := &Provider{t: t, Addr: FreeAddr(t), journal: filepath.Join(dir, "journal.jsonl")}
	p.env = append([]string{providerVariable + "=" + p.Addr, "JOURNAL=" + p.journal}, env...)
	p.Start()
	return p
}

// Start starts the provider again, after a Kill.
func (p *Provider) Start() {
	p.t.Helper()
	self, err := os.Executable()
	Check(p.t, err)
	p.lives++
	log := fmt.Sprintf("%s.%d.log", strings.TrimSuffix(p.journal, ".jsonl"), p.lives)
	p.Process = StartCommand(p.t, process.Command{Name: "provider", Path: self, Env: p.env, Log: log})
	Check(p.t, p.AwaitListen(context.WithoutCancel(p.t.Context()), p.Addr))
}

// URL returns the URL for posting pushes.
func (p *Provider) URL() string { return "http://" + p.Addr + "/send" }

// Arrivals reads the journal.
func (p *Provider) Arrivals() (all []Arrival) {
	p.t.Helper()
	text, err := os.ReadFile(p.journal)
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	for line := range bytes.Lines(text[:bytes.LastIndexByte(text, '\n')+1]) { // the last one may be half written
		var a Arrival
		Check(p.t, json.Unmarshal(line, &a))
		all = append(all, a)
	}
	return all
}

// ServeProvider serves as the provider, and does not return, if StartProvider has
// started this process. A function chooses how each request is treated: it sets
// Does and Taken.
func ServeProvider(choose func(*Arrival)) {
	addr := os.Getenv(providerVariable)
	if addr == "" {
		return
	}
	journal, err := os.OpenFile(os.Getenv("JOURNAL"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	s := simulator{journal: journal, choose: choose}
	if secret, ok := strings.CutPrefix(os.Getenv("PUSH_SECRET"), "whsec_"); ok {
		if s.hook, err = standardwebhooks.NewWebhook(secret); err != nil {
			panic(err)
		}
	}
	panic(http.ListenAndServe(addr, s))
}

type simulator struct {
	journal io.Writer
	choose  func(*Arrival)
	hook    *standardwebhooks.Webhook // nil: signatures are not checked
}

// ServeHTTP records a request, and treats it as chosen.
func (s simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a := Arrival{Does: "followed"} // a redirect, to wherever
	_ = json.Unmarshal(body, &struct {
		ID        *string
		Recipient *string
		Attempt   *int
		Message   *json.RawMessage
	}{&a.Push, &a.Recipient, &a.Attempt, &a.Message})
	a.At, a.Key = time.Now(), r.Header.Get("Idempotency-Key")
	a.Own = r.URL.Query().Has("own")
	a.Signed = s.hook != nil && s.hook.Verify(body, r.Header) == nil
	if r.URL.Path == "/send" {
		a.Does = ""
		s.choose(&a)
	}
	line, err := json.Marshal(a)
	if err == nil {
		_, err = s.journal.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err)
	}
	if do, ok := Behaviours[a.Does]; ok {
		do(w, r)
		return
	}
	accept(w, a.Push, 20*time.Millisecond)
}
