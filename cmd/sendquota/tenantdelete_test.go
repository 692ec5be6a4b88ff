package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// doomed creates a tenant with a deletion that began some time ago.
func (b *bench) doomed() string {
	b.Helper()
	name := uuid.NewString()
	_, _, err := b.st.CreateTenant(b.Context(), name)
	testenv.Check(b, err)
	_, err = b.st.BeginDeletion(b.Context(), name)
	testenv.Check(b, err)
	_, err = testenv.Connect(b, strings.TrimPrefix(b.env[0], "DATABASE_URL=")).Exec(b.Context(), `UPDATE tenants SET deleting_at = deleting_at - interval '1 hour' WHERE name = $1`, name)
	testenv.Check(b, err)
	return name
}

// TestDeleteTenant_Asks: without a terminal and --yes nothing is deleted.
func TestDeleteTenant_Asks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if said, status := tool(t, b.env, &bytes.Buffer{}, "tenants", "delete", "acme"); status != 1 || !strings.Contains(said, "--yes is needed") {
		t.Errorf("%d: %s", status, said)
	}
	if _, err := b.st.Tenant(t.Context(), "acme"); err != nil {
		t.Error(err)
	}
}

// TestExportTenant: the export has all data except secrets, and a second export does not overwrite the first.
func TestExportTenant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.draft()
	_, err := b.api.Recipients.Import(t.Context(), strings.NewReader("recipient,time_zone\nada,Europe/Berlin\n"), client.CSV)
	testenv.Check(t, err)
	b.user("ada@x")
	hook := b.hook()
	dir := filepath.Join(b.dir, "acme")
	b.run("tenants", "export", "acme", dir)
	all := ""
	for _, name := range []string{"tenants", "recipients", "campaigns", "campaign_recipients", "users", "api_keys", "webhooks", "audit_log"} {
		text, err := os.ReadFile(filepath.Join(dir, name+".ndjson"))
		testenv.Check(t, err)
		for line := range bytes.Lines(text) {
			if !json.Valid(line) {
				t.Errorf("%s: %s", name, line)
			}
		}
		all += string(text)
	}
	for _, want := range []string{"ada@x", "Europe/Berlin", "https://example.com/hook", `"name":"acme"`} {
		if !strings.Contains(all, want) {
			t.Errorf("the export has no %s", want)
		}
	}
	for _, secret := range []string{hook, "hash", "secret", "token"} {
		if strings.Contains(all, secret) {
			t.Errorf("the export has %s", secret)
		}
	}
	if said, status := tool(t, b.env, &bytes.Buffer{}, "tenants", "export", "acme", dir); status != 1 || !strings.Contains(said, "exists already") {
		t.Errorf("%d: %s", status, said)
	}
}

// TestOperator: the audit log names the operator for changes by the tool.
func TestOperator(t *testing.T) {
	t.Parallel()
	b := setup(t)
	host, err := os.Hostname()
	testenv.Check(t, err)
	for _, row := range []struct {
		env  []string
		want string
	}{
		{[]string{"USER=root", "SUDO_USER=ada"}, "ada@" + host},
		{[]string{"USER=bea"}, "bea@" + host},
	} {
		if said, status := tool(t, append(b.env, row.env...), &bytes.Buffer{}, "keys", "create", "--tenant", "acme"); status != 0 {
			t.Fatal(said)
		}
		page, err := b.st.AuditLog(t.Context(), b.tenant, auditlog.Filter{}, auditlog.Position{}, 1)
		testenv.Check(t, err)
		if e := page.Entries[0]; e.Action != auditlog.KeyCreate || e.ActorName != row.want || e.Actor.Type != push.ActorSystem {
			t.Errorf("%v: %+v", row.env, e)
		}
	}
}
