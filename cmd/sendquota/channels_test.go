package main

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/seal"
)

// TestChannels_Tool: a tenant's list has its own channels with what stops them, and the list of all tenants one row for them. A wrong
// object is refused with every error, and a program with another key stores nothing.
func TestChannels_Tool(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := "own-" + uuid.NewString()
	file := b.file("own.json", `{"type": "log", "disabled": true}`)
	if said := b.run("channels", "set", "--tenant", "acme", name, file); !strings.Contains(said, "is created; all programs use it within 2 seconds") {
		t.Error(said)
	}
	row := func(list, name string) string {
		for line := range strings.Lines(list) {
			if strings.HasPrefix(line, name+" ") {
				return strings.Join(strings.Fields(line), " ")
			}
		}
		return ""
	}
	if got := row(b.run("channels", "list", "--tenant", "acme"), name); got != name+" tenant disabled - 0 0 0 0 0" {
		t.Errorf("the tenant's list has %q", got)
	}
	all := b.run("channels", "list")
	if got := row(all, allOwn); !strings.HasPrefix(got, allOwn+" tenant ") || strings.Contains(all, name) || row(all, "*") != "" {
		t.Errorf("the list of all tenants: %s", all)
	}
	if said := b.run("channels", "set", "--tenant", "acme", name, file); !strings.Contains(said, "is changed") {
		t.Error(said)
	}
	for body, want := range map[string]string{
		`{"type": "logg", "x": 1}`: "type: logg: must be one of log (did you mean log?)", `{"type": "log", "timout": "1s", "max_attempts": 0}`: "max_attempts: 0: must be a whole number from 1 to 100", `[]`: "must be an object", `{`: "must be a JSON object",
		`{"type": "log", "type": "log"}`: "type: is written twice",
	} {
		said, status := tool(t, b.env, nil, "channels", "set", "--tenant", "acme", name, b.file(uuid.NewString(), body))
		if status != 1 || !strings.Contains(said, want) {
			t.Errorf("%s: %d %s; want %s", body, status, said, want)
		}
	}
	said, status := tool(t, append(b.env[:len(b.env):len(b.env)], seal.KeyVariable+"="+seal.NewKey()), nil, "channels", "set", "--tenant", "acme", "other-key", file)
	if status != 1 || !strings.Contains(said, "another program of this database has another SENDQUOTA_SEAL_KEY") {
		t.Errorf("with another key: %d %s", status, said)
	}
	if said, status := tool(t, b.env, nil, "channels", "test", "--tenant", "acme", "log"); status != 1 || !strings.Contains(said, "has no channel") {
		t.Errorf("a test of the operator's channel: %d %s", status, said)
	}
}
