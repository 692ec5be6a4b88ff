// Package clienttest has the tests of the client that need a server. They are not in the client's module, because it would have the
// requirements of the server then.
package clienttest

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/app"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// server is the sendquota that the tests share: API and worker, in this process.
var server struct {
	address string
	store   *store.Store
}

const settings = `
policy: {rules: [{name: per-minute, limit: 1, window: 1m}, {name: per-day, limit: 20, window: 24h}]}
channels:
  log: {type: log}
http: {drain: 0s}
webhooks: {allow_private_addresses: true}
`

func TestMain(m *testing.M) { testenv.Main(m, serve) }

// serve runs the server until the test ends.
func serve(t testenv.T) {
	file := filepath.Join(t.TempDir(), "sendquota.yaml")
	testenv.Check(t, os.WriteFile(file, []byte(settings), 0o600))
	ctx, stop := context.WithCancel(context.Background())
	cfg, err := config.Load([]string{"DATABASE_URL=" + testenv.Postgres(t), "REDIS_URL=" + testenv.Redis(t), "SENDQUOTA_CONFIG=" + file, "SENDQUOTA_ADDR=127.0.0.1:0", "SENDQUOTA_SEAL_KEY=" + testenv.SealKey})
	testenv.Check(t, err)
	server.store, err = store.Open(ctx, string(cfg.DatabaseURL), store.Config{MaxConns: 4})
	testenv.Check(t, err)
	t.Cleanup(server.store.Close)
	a, err := app.Open(ctx, cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	testenv.Check(t, err)
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- a.RunBoth(ctx, ready) }()
	testenv.Finally(t, func() error {
		stop()
		if err := <-done; err != nil {
			return err
		}
		return a.Close()
	})
	select {
	case addr := <-ready:
		server.address = "http://" + addr
	case err := <-done:
		done <- err
		t.Fatal(err)
	}
}

// newKey returns an API key of a new tenant.
func newKey() string {
	ctx := context.Background()
	tenant, _, err := server.store.CreateTenant(ctx, uuid.NewString())
	if err != nil {
		panic(err)
	}
	_, key, err := server.store.CreateKey(ctx, apikey.NewKey{Tenant: tenant, Scopes: push.Scopes})
	if err != nil {
		panic(err)
	}
	return key
}

// newClient returns a client of the server with the key of a new tenant.
func newClient() *client.Client {
	c, err := client.New(server.address, newKey(), client.Config{})
	if err != nil {
		panic(err)
	}
	return c
}

// inDays returns noon, n days from now.
func inDays(n int) time.Time {
	return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, n).Add(12 * time.Hour)
}
