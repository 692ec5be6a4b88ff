package app

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestHandlers_Console: the console is served only at the address of the settings.
func TestHandlers_Console(t *testing.T) {
	database, redis := testenv.Postgres(t), testenv.Redis(t)
	for _, row := range []struct {
		settings string
		api, own map[string]int // the statuses of paths; own: nil for no address of its own
	}{
		{"{}", map[string]int{"/console/sign-in": 404, "/docs": 200, "/docs/try": 200, "/v1/pushes": 401}, nil},
		{"console: {enabled: true}", map[string]int{"/console/sign-in": 200, "/console": 303, "/console/": 303, "/console/now": 303, "/docs": 200, "/docs/try": 404, "/v1/pushes": 401, "/consoles": 404, "/v1/../console/sign-in": 404}, nil},
		{"console: {enabled: true, addr: '127.0.0.1:1'}", map[string]int{"/console/sign-in": 404, "/docs": 200, "/docs/try": 200}, map[string]int{"/": 303, "/console/sign-in": 200, "/v1/pushes": 303, "/docs": 303, "/docs/try": 303}},
		{"console: {addr: '127.0.0.1:1'}", map[string]int{"/console/sign-in": 404}, nil},
	} {
		file := filepath.Join(t.TempDir(), "sendquota.yaml")
		testenv.Check(t, os.WriteFile(file, []byte(row.settings), 0o600))
		cfg, err := Load([]string{"DATABASE_URL=" + database, "REDIS_URL=" + redis, "SENDQUOTA_CONFIG=" + file})
		testenv.Check(t, err)
		a, err := Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
		testenv.Check(t, err)
		api, own := a.handlers()
		statuses := func(h http.Handler, want map[string]int) {
			for path, status := range want {
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
				if rec.Code != status {
					t.Errorf("%s: %s answers %d, want %d", row.settings, path, rec.Code, status)
				}
			}
		}
		statuses(api, row.api)
		if (own != nil) != (row.own != nil) {
			t.Errorf("%s: an address of its own: %v", row.settings, own != nil)
		} else if own != nil {
			statuses(own, row.own)
		}
		testenv.Check(t, a.Close())
	}
}

// TestWarn_SharedAddress: the log warns of settings that give all people one shared address.
func TestWarn_SharedAddress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sendquota.yaml")
	testenv.Check(t, os.WriteFile(file, []byte(`console: {enabled: true, public_url: "https://c"}`), 0o600))
	cfg, err := Load([]string{"DATABASE_URL=" + testenv.Postgres(t), "REDIS_URL=" + testenv.Redis(t), "SENDQUOTA_CONFIG=" + file})
	testenv.Check(t, err)
	var log testenv.Buffer
	a, err := Open(t.Context(), cfg, slog.New(slog.NewTextHandler(&log, nil)))
	testenv.Check(t, err)
	a.warn(t.Context())
	testenv.Check(t, a.Close())
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "api_limits.trusted_proxies is empty") {
		t.Errorf("%s", log.String())
	}
}

// TestLoad_OIDCSecretFile: the start reports a file that cannot be read, and white space around the secret is not part of it.
func TestLoad_OIDCSecretFile(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	file := filepath.Join(dir, "sendquota.yaml")
	testenv.Check(t, os.WriteFile(file, []byte(`console: {public_url: "https://c", oidc: {issuer: "https://i", client_id: a, client_secret_file: "`+secret+`", roles: {g: admin}, tenant: t}}`), 0o600))
	environ := []string{"DATABASE_URL=postgres://h/d", "REDIS_URL=redis://h", "SENDQUOTA_CONFIG=" + file}
	if _, err := Load(environ); err == nil || !strings.Contains(err.Error(), "console.oidc.client_secret_file: open "+secret) {
		t.Errorf("%v", err)
	}
	testenv.Check(t, os.WriteFile(secret, []byte("hush\n"), 0o600))
	cfg, err := Load(environ)
	testenv.Check(t, err)
	o, err := openOIDC(cfg.Console.OIDC)
	if err != nil || o.ClientSecret != "hush" || o.Roles["g"] != "admin" || o.Issuer != "https://i" {
		t.Errorf("%+v, %v", o, err)
	}
}
