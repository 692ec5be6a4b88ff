package main

import (
	"strings"
	"testing"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestOperators_AllTenants: lists show all tenants, or one; an id is enough to find or cancel a push.
func TestOperators_AllTenants(t *testing.T) {
	t.Parallel()
	b := setup(t)
	own := b.push("ada")
	other, _, err := b.st.CreateTenant(t.Context(), "other")
	testenv.Check(t, err)
	_, key, err := b.st.CreateKey(t.Context(), apikey.NewKey{Tenant: other, Scopes: push.Scopes})
	testenv.Check(t, err)
	api, err := client.New(b.address, key, client.Config{})
	testenv.Check(t, err)
	p, err := api.Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "bea", Message: client.Message{"title": "HUSH"}, SendAt: tomorrow()})
	testenv.Check(t, err)
	theirs := p.ID
	b.hook()
	testenv.Exec(t, b.database, `UPDATE pushes SET held_by = 'night', held_since = clock_timestamp() WHERE id = $1`, own)
	testenv.Exec(t, b.database, `UPDATE live SET put_off_at = clock_timestamp() WHERE push_id = $1`, own)
	testenv.Check(t, b.st.ReplaceChannelViews(t.Context(), b.tenant, []channelhealth.View{{Channel: "log", State: channelhealth.Working}}))
	testenv.Check(t, b.st.CountOutcomes(t.Context(), b.tenant, []channelhealth.Outcomes{{Tenant: b.tenant, Channel: "log", Attempts: 20, Rejected: 20}}))
	for _, row := range []struct {
		line      string
		has, lack []string
	}{
		{"push list", []string{own, theirs}, nil},
		{"push list --tenant other", []string{theirs}, []string{own}},
		{"push list --limit 1", []string{own}, []string{theirs}},
		{"push list --status canceled", nil, []string{own, theirs}},
		{"push get " + theirs, []string{"other", "bea", "scheduled"}, nil},
		{"push cancel " + theirs, []string{"canceled"}, nil},
		{"push cancel " + theirs, []string{"canceled"}, nil},
		{"push list --status canceled --json", []string{theirs, `"tenant":"other"`}, []string{own}},
		{"push get " + own, []string{"held by     night, since"}, nil},
		{"channels", []string{"rejecting"}, nil}, // the worst of all tenants
		{"channels --tenant other", []string{"working"}, []string{"rejecting"}},
		{"status --tenant acme --json", []string{`"put_off":1`}, nil},
		{"status", []string{"acme", "other"}, nil},
		{"status --tenant acme --json", []string{`"waiting":1`}, []string{"other"}},
		{"webhooks", []string{"acme", "https://example.com/hook"}, []string{"secret"}},
		{"webhooks --tenant other", nil, []string{"hook"}},
		{"failures", nil, []string{"acme"}},
	} {
		got := b.run(strings.Fields(row.line)...)
		for _, want := range row.has {
			if !strings.Contains(got, want) {
				t.Errorf("%s has no %s: %s", row.line, want, got)
			}
		}
		for _, not := range append(row.lack, "HUSH") {
			if strings.Contains(got, not) {
				t.Errorf("%s has %s: %s", row.line, not, got)
			}
		}
	}
}
