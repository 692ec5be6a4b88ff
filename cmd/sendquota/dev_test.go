//go:build !nodev

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/user"
)

// TestWelcome_Inbox: messages arrive in the terminal only without a file of settings, which would have its own channels.
func TestWelcome_Inbox(t *testing.T) {
	t.Parallel()
	for _, inbox := range []bool{true, false} {
		var text strings.Builder
		welcome(&text, "127.0.0.1:8080", "key", "log", "push", inbox)
		if got := strings.Contains(text.String(), "watch the first one arrive here"); got != inbox || strings.Contains(text.String(), "%!") {
			t.Errorf("inbox %v: %s", inbox, text.String())
		}
	}
}

// TestDev_IgnoresServersOfEnvironment: dev ignores the shell's variables, which may name servers of production; the flags name servers.
func TestDev_IgnoresServersOfEnvironment(t *testing.T) {
	t.Setenv("PGOPTIONS", "-c search_path=app")
	shell := []string{"DATABASE_URL=postgres://production/db", "REDIS_URL=redis://production", "PGOPTIONS=-c search_path=app"}
	cfg, err := dev{}.settings(shell)
	if err != nil || cfg.DatabaseURL != "" || cfg.RedisURL != "" {
		t.Errorf("dev takes the servers of the shell: %v", err)
	}
	if _, set := os.LookupEnv("PGOPTIONS"); set {
		t.Error("its servers are asked with the options of the shell")
	}
	cfg, err = dev{DatabaseURL: "postgres://here/db", RedisURL: "redis://here"}.settings(shell)
	if err != nil || cfg.DatabaseURL != "postgres://here/db" || cfg.RedisURL != "redis://here" {
		t.Errorf("dev does not take the servers of its flags: %v", err)
	}
	_, err = dev{DatabaseURL: "mysql://here", RedisURL: "here"}.settings(shell)
	if err == nil || !strings.Contains(err.Error(), "--database-url: mysql://…: must begin") || !strings.Contains(err.Error(), "--redis-url: ") {
		t.Errorf("wrong flags: %v", err)
	}
}

// TestDev_SealKey: the first run makes a key beside the data, which only its user can read. Later runs use it, and ignore the shell's
// key. With --database-url, dev uses the shell's key.
func TestDev_SealKey(t *testing.T) {
	t.Parallel()
	c := dev{Dir: t.TempDir()}
	first, err := c.sealKey()
	testenv.Check(t, err)
	second, err := c.sealKey()
	testenv.Check(t, err)
	path := filepath.Join(c.Dir, "seal-key")
	info, err := os.Stat(path)
	testenv.Check(t, err)
	if first == "" || first != second || info.Mode() != 0o600 {
		t.Errorf("two keys, or their mode is %s", info.Mode())
	}
	shell := []string{"SENDQUOTA_SEAL_KEY=" + testenv.SealKey, "SENDQUOTA_SEAL_KEY_PREVIOUS=" + testenv.SealKey}
	if cfg, err := c.settings(shell); err != nil || cfg.SealKey+cfg.PreviousSealKey != "" {
		t.Errorf("dev seals its own data with the key of the shell: %v", err)
	}
	c.DatabaseURL = "postgres://here/db"
	if cfg, err := c.settings(shell); err != nil || cfg.SealKey != testenv.SealKey {
		t.Errorf("dev does not take the key of a database that is named: %v", err)
	}
	testenv.Check(t, os.WriteFile(path, []byte("half a key"), 0o600))
	if _, err := c.sealKey(); err == nil || !strings.Contains(err.Error(), path+": must be 32 bytes") || strings.Contains(err.Error(), "half") {
		t.Errorf("a broken file: %v", err)
	}
}

// TestDev_RefusesTenants: dev changes nothing in a database that has a tenant besides demo, and makes no folder.
func TestDev_RefusesTenants(t *testing.T) {
	t.Parallel()
	url, dir := testenv.Postgres(t), filepath.Join(t.TempDir(), "dev")
	testenv.Exec(t, url, `INSERT INTO tenants (id, name) VALUES (gen_random_uuid(), 'acme'); DELETE FROM sendquota_version WHERE version_id = 1`)
	err := dev{Dir: dir, DatabaseURL: url, RedisURL: "redis://127.0.0.1:1"}.Run()
	if err == nil || !strings.Contains(err.Error(), "tenants other than demo (1)") {
		t.Errorf("dev on a database of others: %v", err)
	}
	if names := testenv.Query[string](t, url, `SELECT string_agg(name, ' ') FROM tenants`); names != "acme" {
		t.Errorf("tenants %s", names)
	}
	if n := testenv.Query[int](t, url, `SELECT count(*) FROM sendquota_version WHERE version_id = 1`); n > 0 {
		t.Error("dev migrated the database")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder: %v", err)
	}
}

// TestDemoAdmin: each run of the demo has a link until one has been used.
func TestDemoAdmin(t *testing.T) {
	st, err := store.Open(t.Context(), testenv.Postgres(t), store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	tenant, _, err := st.CreateTenant(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	invited := func(want string) invitation {
		t.Helper()
		got, err := demoAdmin(t.Context(), st, tenant)
		if err != nil || got.email != want || (got.token == "") != (want == "") {
			t.Fatalf("%+v, %v", got, err)
		}
		return got
	}
	first, last := invited(demoEmail), invited(demoEmail)
	if first == last {
		t.Errorf("%+v", last)
	}
	// Another admin can sign in, so no link is needed, although the first admin has not used one.
	token, link := user.NewLink()
	bea, err := st.CreateUser(t.Context(), user.New{Tenant: tenant, Email: "bea@x", Role: user.Admin, Link: link})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.SetPassword(t.Context(), user.HashLink(token), "$a"); err != nil {
		t.Fatal(err)
	}
	invited("")
	change := func(id uuid.UUID, c user.Change) {
		t.Helper()
		if _, err := st.ChangeUser(t.Context(), nil, tenant, id, c); err != nil {
			t.Fatal(err)
		}
	}
	change(bea.ID, user.Change{Disabled: new(true)})
	last = invited(demoEmail)
	ada, err := st.UserByLink(t.Context(), user.HashLink(last.token))
	if err != nil {
		t.Fatal(err)
	}
	// The invitation names the admin of the link.
	if _, err = st.CreateUser(t.Context(), user.New{Tenant: tenant, Email: "cy@x", Role: user.Admin}); err != nil {
		t.Fatal(err)
	}
	change(ada.ID, user.Change{Role: new(user.Viewer)})
	invited("cy@x")
}

// TestInvite: the link leads to the address of the console.
func TestInvite(t *testing.T) {
	for _, row := range []struct{ public, addr, want string }{
		{"", "", "http://127.0.0.1:4711"},
		{"", "127.0.0.1:4712", "http://127.0.0.1:4712"},
		{"https://c.example.com", "127.0.0.1:4712", "https://c.example.com"},
	} {
		var (
			cfg config.Config
			out strings.Builder
		)
		cfg.Addr, cfg.Console.PublicURL, cfg.Console.Addr = "127.0.0.1:0", row.public, row.addr
		invite(&out, cfg, "127.0.0.1:4711", invitation{"ada@x", "token"})
		invite(&out, cfg, "127.0.0.1:4711", invitation{})
		for _, want := range []string{"for ada@x\n", row.want + "/console/set-password/token\n", "is at " + row.want + "/console\n"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%+v: %s", row, out.String())
			}
		}
	}
}
