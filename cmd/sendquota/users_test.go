package main

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/user"
)

// TestCreateUser_Flags: flags for a user who could not sign in are errors.
func TestCreateUser_Flags(t *testing.T) {
	for _, row := range []struct{ args, wrong string }{
		{"--tenant a --email Ada@x --role admin", ""},
		{"--tenant a --email ada --role admin", `--email "ada": must be an e-mail address`},
		{"--tenant a --email= --role admin", "--email"},
		{"--tenant a --email a@b --role king", "--role"},
		{"--tenant a --email a@b", "--role"},
		{"--email a@b --role admin", "--tenant"},
		{"--tenant a --email a@b --role admin --name a\x1bb", "--name"},
	} {
		var c createUser
		parser, err := kong.New(&c)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parser.Parse(strings.Split(row.args, " "))
		if (err == nil) != (row.wrong == "") || err != nil && !strings.Contains(err.Error(), row.wrong) {
			t.Errorf("%q: %v, want %s", row.args, err, row.wrong)
		}
	}
}

// output returns the standard output of a command.
func output(t *testing.T, run func() error) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stdout
	os.Stdout = w
	err = run()
	os.Stdout = old
	_ = w.Close()
	text, readErr := io.ReadAll(r)
	if err != nil || readErr != nil {
		t.Fatal(err, readErr)
	}
	return string(text)
}

var printedLink = regexp.MustCompile(`^https://c\.example\.com/console/set-password/([A-Za-z0-9_-]{43})\n$`)

// TestUsers_Life: the tool creates a user and prints only the link.
func TestUsers_Life(t *testing.T) {
	file := t.TempDir() + "/sendquota.yaml"
	if err := os.WriteFile(file, []byte("console: {public_url: 'https://c.example.com'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := testenv.Postgres(t)
	t.Setenv("DATABASE_URL", url)
	t.Setenv("SENDQUOTA_CONFIG", file)
	st, err := store.Open(t.Context(), url, store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	tenant, _, err := st.CreateTenant(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	uses := func(printed string) user.User {
		t.Helper()
		m := printedLink.FindStringSubmatch(printed)
		if m == nil {
			t.Fatalf("%q", printed)
		}
		u, err := st.UserByLink(t.Context(), user.HashLink(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	create := createUser{Tenant: "acme", Email: "Ada@Example.com", Role: user.Admin}
	ada := uses(output(t, create.Run))
	if ada.Email != "ada@example.com" || ada.Role != user.Admin || ada.Tenant != tenant {
		t.Errorf("%+v", ada)
	}
	if err := create.Run(); err == nil || !strings.Contains(err.Error(), "there is a user ada@example.com") {
		t.Errorf("%v", err)
	}
	if again := uses(output(t, linkUser{ID: ada.ID}.Run)); again.ID != ada.ID {
		t.Errorf("%+v", again)
	}
	if err := (disableUser{ID: ada.ID}).Run(); err == nil || !strings.Contains(err.Error(), "is the last admin of the tenant acme") {
		t.Errorf("%v", err)
	}
	bea := uses(output(t, createUser{Tenant: "acme", Email: "bea@x", Role: user.Viewer}.Run))
	for enable, want := range map[bool]string{false: "is disabled", true: "may sign in"} {
		if got := output(t, disableUser{ID: bea.ID, Enable: enable}.Run); !strings.Contains(got, want) {
			t.Errorf("%q", got)
		}
	}
	list := output(t, listUsers{}.Run)
	if strings.Count(list, "\n") != 3 || !strings.Contains(list, "ada@example.com") || strings.Contains(list, "set-password") {
		t.Errorf("%s", list)
	}
	for _, err := range []error{linkUser{ID: tenant}.Run(), disableUser{ID: tenant}.Run()} {
		if err == nil || !strings.Contains(err.Error(), "there is no user") {
			t.Errorf("%v", err)
		}
	}
}
