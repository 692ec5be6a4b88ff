package app

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/seal"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/webhook"
)

// TestOpen_Seals: a start fails if its key opens no sealed row, and the error has the next step. If the key opens some, the start logs
// it. `config check --connect` reports both. Without sealed rows no key is needed, nor is the previous key after a reseal of all.
func TestOpen_Seals(t *testing.T) {
	t.Parallel()
	database, redisURL := testenv.Postgres(t), testenv.Redis(t)
	was, is := seal.NewKey(), seal.NewKey()
	settings := func(key, previous string) config.Config {
		t.Helper()
		cfg, err := config.Load([]string{"DATABASE_URL=" + database, "REDIS_URL=" + redisURL, seal.KeyVariable + "=" + key, seal.PreviousVariable + "=" + previous})
		testenv.Check(t, err)
		return cfg
	}
	start := func(key, previous string) (*App, string, error) {
		t.Helper()
		var log testenv.Buffer
		a, err := Open(t.Context(), settings(key, previous), slog.New(slog.NewTextHandler(&log, nil)))
		if err == nil {
			testenv.Finally(t, a.Close)
		}
		return a, log.String(), err
	}
	try := func(key, previous, fault, logged string) *App {
		t.Helper()
		a, log, err := start(key, previous)
		checked := CheckServers(t.Context(), settings(key, previous))
		switch {
		case (fault == "") != (err == nil), err != nil && (!strings.Contains(err.Error(), fault) || strings.Contains(err.Error(), "\n")):
			t.Errorf("the start: %v, want %q", err, fault)
		case !strings.Contains(log, logged) || logged == "" && strings.Contains(log, "seal"):
			t.Errorf("the log: %s, want %q", log, logged)
		}
		if want := fault + logged; want == "" && checked != nil || want != "" && (checked == nil || !strings.Contains(checked.Error(), want)) {
			t.Errorf("config check: %v, want %q", checked, want)
		}
		return a
	}
	hook := func(a *App) {
		t.Helper()
		tenant, _, err := a.store.CreateTenant(t.Context(), "acme")
		testenv.Check(t, err)
		_, err = a.store.CreateWebhook(t.Context(), webhook.Webhook{ID: uuid.New(), Tenant: tenant, URL: "https://example.com", Events: webhook.Events}, "hush", 10)
		testenv.Check(t, err)
	}
	try("", "", "", "")
	hook(try(was, "", "", ""))
	try("", "", "sealed secrets of webhooks and channels (1), but SENDQUOTA_SEAL_KEY is not set: set it to the key that sealed them", "")
	try(is, "", "SENDQUOTA_SEAL_KEY does not open 1 of 1 sealed secrets", "")
	a := try(is, was, "", "")
	hook(a)
	try(is, "", "", "SENDQUOTA_SEAL_KEY does not open 1 of 2 sealed secrets of webhooks and channels in the database: set it, or SENDQUOTA_SEAL_KEY_PREVIOUS, to the key")
	_, err := a.store.Reseal(t.Context(), func(int) {})
	testenv.Check(t, err)
	try(is, "", "", "")
}

// TestOpen_OtherKey: a program whose key is none that another program has used does not start, although nothing is sealed. A change of
// keys goes on.
func TestOpen_OtherKey(t *testing.T) {
	t.Parallel()
	database, redisURL := testenv.Postgres(t), testenv.Redis(t)
	was, is := seal.NewKey(), seal.NewKey()
	for _, start := range []struct{ key, previous, fault string }{
		{was, "", ""}, {is, "", "another program of this database has another SENDQUOTA_SEAL_KEY"}, {was, is, ""}, {is, was, ""}, {is, "", ""}, {was, "", "another program"}, {"", "", ""},
	} {
		cfg, err := config.Load([]string{"DATABASE_URL=" + database, "REDIS_URL=" + redisURL, seal.KeyVariable + "=" + start.key, seal.PreviousVariable + "=" + start.previous})
		testenv.Check(t, err)
		a, err := Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err == nil {
			testenv.Finally(t, a.Close)
		}
		if (start.fault == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), start.fault) {
			t.Errorf("the start: %v, want %q", err, start.fault)
		}
	}
}
