package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/seal"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/tenantchannel"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/webhook"
)

// sealing is a database with webhooks that have secrets of several keys.
type sealing struct {
	*testing.T
	url    string
	tenant uuid.UUID
}

// store opens the database with keys. The first one seals.
func (s *sealing) store(keys ...string) *store.Store {
	s.Helper()
	sealer, err := seal.New(keys...)
	testenv.Check(s, err)
	st, err := store.Open(s.Context(), s.url, store.Config{MaxConns: 2, Sealer: sealer, Timeout: testenv.StoreTimeout})
	testenv.Check(s, err)
	s.Cleanup(st.Close)
	return st
}

// hooks creates webhooks with secrets that a key sealed before another one was recorded.
func (s *sealing) hooks(n int, key string) {
	s.Helper()
	known := testenv.Query[[]byte](s, s.url, `SELECT seal_key FROM installation`)
	testenv.Exec(s, s.url, `UPDATE installation SET seal_key = NULL`)
	defer func() { testenv.Exec(s, s.url, `UPDATE installation SET seal_key = $1`, known) }()
	st := s.store(key)
	for i := range n {
		_, err := st.CreateWebhook(s.Context(), webhook.Webhook{ID: uuid.New(), Tenant: s.tenant, URL: "https://example.com", Events: webhook.Events}, fmt.Sprint("hush-", i), 1000)
		testenv.Check(s, err)
	}
}

// rotate runs the command with keys and flags.
func (s *sealing) rotate(current, previous string, flags ...string) (out, said string, status int) {
	s.Helper()
	var text strings.Builder
	env := []string{"DATABASE_URL=" + s.url, "SENDQUOTA_SEAL_KEY=" + current, "SENDQUOTA_SEAL_KEY_PREVIOUS=" + previous}
	said, status = tool(s.T, env, &text, append([]string{"seal", "rotate"}, flags...)...)
	for _, key := range []string{current, previous, "hush"} {
		if key != "" && strings.Contains(text.String()+said, key) {
			s.Errorf("it prints a key or a secret: %s%s", text.String(), said)
		}
	}
	return text.String(), said, status
}

// TestSealRotate: the new key seals all secrets, and then the previous key is not needed. Secrets that neither key opens are named and
// kept; only their exact number gives them up.
func TestSealRotate(t *testing.T) {
	t.Parallel()
	s := &sealing{T: t, url: testenv.Postgres(t)}
	was, is, gone := seal.NewKey(), seal.NewKey(), seal.NewKey()
	var err error
	s.tenant, _, err = s.store().CreateTenant(t.Context(), "acme")
	testenv.Check(t, err)
	s.hooks(3, was)
	s.hooks(1, is)

	if _, said, status := s.rotate("", ""); status != 1 || !strings.Contains(said, "SENDQUOTA_SEAL_KEY is not set") {
		t.Errorf("without a key: %d %s", status, said)
	}
	if out, said, status := s.rotate(is, was); status != 0 || out != "resealed 3 secrets\n" || said != "" {
		t.Errorf("%d %s%s", status, out, said)
	}
	testenv.Check(t, s.store(is).CheckSeals(t.Context()))
	if out, _, status := s.rotate(is, "", "--json"); status != 0 || out != `{"forgotten":0,"resealed":0,"unopened":[]}`+"\n" {
		t.Errorf("again: %d %s", status, out)
	}

	s.hooks(2, gone)
	var report struct{ Unopened []string }
	out, said, status := s.rotate(is, was, "--json")
	if err := json.Unmarshal([]byte(out), &report); err != nil || status != 1 || len(report.Unopened) != 2 || !strings.Contains(said, "--forget 2") {
		t.Errorf("%d %s%s %v", status, out, said, err)
	}
	if out, said, status := s.rotate(is, was, "--forget", "3"); status != 1 || !strings.Contains(said, "nothing was given up") || strings.Count(out, "cannot open webhooks.secret of ") != 2 {
		t.Errorf("another number: %d %s%s", status, out, said)
	}
	if _, said, status := s.rotate(gone, "", "--forget", "2"); status != 1 || !strings.Contains(said, "neither key opens 4 secrets, not 2") {
		t.Errorf("with a wrong key: %d %s", status, said)
	}
	if out, said, status := s.rotate(is, "", "--forget", "2"); status != 0 || out != "resealed 0 secrets\ngave up 2 secrets\n" {
		t.Errorf("%d %s%s", status, out, said)
	}
	testenv.Check(t, s.store(is).CheckSeals(t.Context()))
	if n := testenv.Query[int](t, s.url, `SELECT count(*) FROM webhooks WHERE disabled_at IS NULL AND secret <> ''`); n != 4 {
		t.Errorf("%d webhooks still work, want 4", n)
	}
	if said, status := tool(t, nil, io.Discard, "seal", "rotate", "--forget=-1"); status != 2 {
		t.Errorf("a negative number: %d %s", status, said)
	}
}

// TestSealRotate_ForgottenChannel: a channel whose secrets are given up is disabled. It does not send without a password instead.
func TestSealRotate_ForgottenChannel(t *testing.T) {
	t.Parallel()
	s := &sealing{T: t, url: testenv.Postgres(t)}
	is, gone := seal.NewKey(), seal.NewKey()
	var err error
	s.tenant, _, err = s.store().CreateTenant(t.Context(), "acme")
	testenv.Check(t, err)
	mail := tenantchannel.Change{Name: "mail", Type: "email", Settings: json.RawMessage(`{"type": "email", "host": "smtp.example.com", "from": "a@example.com"}`), Secrets: map[string]string{"username": "hush", "password": "hush"}, Max: 2}
	_, _, err = s.store(gone).PutChannel(t.Context(), s.tenant, "mail", func(tenantchannel.Channel) (tenantchannel.Change, error) { return mail, nil })
	testenv.Check(t, err)
	if out, said, status := s.rotate(is, "", "--forget", "1"); status != 0 || !strings.Contains(out, "gave up 1 secrets") {
		t.Errorf("%d %s%s", status, out, said)
	}
	own, err := s.store(is).OwnChannels(t.Context(), s.tenant)
	testenv.Check(t, err)
	if c := own.Channels[0]; !c.Disabled || c.Fault != nil || len(c.Secrets)+len(c.SecretAt) > 0 || !strings.Contains(string(c.Settings), `"disabled": true`) {
		t.Errorf("the channel is %+v", c)
	}
}

// TestSealRotate_TooEarly: while the programs run with the old key alone, nothing is sealed with the new one, unless they are stopped.
func TestSealRotate_TooEarly(t *testing.T) {
	t.Parallel()
	s := &sealing{T: t, url: testenv.Postgres(t)}
	was, is := seal.NewKey(), seal.NewKey()
	var err error
	s.tenant, _, err = s.store().CreateTenant(t.Context(), "acme")
	testenv.Check(t, err)
	s.hooks(2, was)
	testenv.Check(t, s.store(was).NoteSealKey(t.Context(), false)) // as a program does when it starts
	if out, said, status := s.rotate(is, was); status != 1 || out != "" || !strings.Contains(said, "start every api and worker with both keys first, or stop them all and add --stopped") {
		t.Errorf("%d %s%s", status, out, said)
	}
	testenv.Check(t, s.store(was).CheckSeals(t.Context()))
	if out, said, status := s.rotate(is, was, "--stopped"); status != 0 || out != "resealed 2 secrets\n" {
		t.Errorf("with all programs stopped: %d %s%s", status, out, said)
	}
	if out, said, status := s.rotate(is, was); status != 0 || out != "resealed 0 secrets\n" {
		t.Errorf("again: %d %s%s", status, out, said)
	}
}
