package httpapi

import (
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/accounts"
	"github.com/sendquota/sendquota/internal/user"
)

// as returns the headers of another key of the tenant's, which has the scopes of a role.
func (b *bundle) as(role user.Role) []string {
	b.t.Helper()
	_, key, err := b.store.CreateKey(b.t.Context(), apikey.NewKey{Tenant: b.tenant, Scopes: role.Scopes()})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.store.Key(b.t.Context(), accounts.HashKey(key)); err != nil {
		b.t.Fatal(err)
	}
	return []string{"Authorization", "Bearer " + key}
}

// TestEditor_NothingBookedChanges: an editor changes the policy for what is submitted from then on, and moves or cancels nothing by it.
func TestEditor_NothingBookedChanges(t *testing.T) {
	b := setup(t)
	editor, sender := b.as(user.Editor), b.as(user.Sender)
	const none = `{"rules":[{"name":"none","limit":0,"window":"1h"}]}`
	for _, apply := range []string{"cancel", "reslot"} {
		for method, body := range map[string]string{"PUT": none, "DELETE": ""} {
			r := b.send(method, "/v1/policy?apply="+apply, body, editor...).must(t, 403, "forbidden")
			if r.at(t, "scope") != push.ScopeWrite || !strings.Contains(r.text, "apply="+apply) {
				t.Errorf("%s", r.text)
			}
		}
		b.send("PUT", "/v1/policy?forecast=true&apply="+apply, none, editor...).must(t, 200)
	}
	if got := b.send("GET", "/v1/policy", "").must(t, 200); got.at(t, "version") != 0.0 {
		t.Errorf("%s", got.text)
	}
	b.send("PUT", "/v1/policy", none, editor...).must(t, 200)
	b.send("PUT", "/v1/policy?apply=cancel", none, sender...).must(t, 202)
}

// TestEditor_PatternsStay: a draft that a schedule copies is as good as started, so that an editor changes it no more; also while the
// schedule is paused, because a sender could resume it without reading the draft.
func TestEditor_PatternsStay(t *testing.T) {
	b := setup(t)
	editor, sender := b.as(user.Editor), b.as(user.Sender)
	id := b.campaign(`{"name":"digest","message":{"body":"Hi"}}`)
	path := "/v1/campaigns/" + id
	change := func(by []string, status int, problem ...string) {
		t.Helper()
		for _, r := range []reply{
			b.send("PATCH", path, `{"name":"other"}`, by...), b.send("PUT", path+"/audience", "recipient\nanna\n", append([]string{"Content-Type", "text/csv"}, by...)...),
		} {
			if r.must(t, status, problem...); status == 403 && (r.at(t, "scope") != push.ScopeCampaignsWrite || !strings.Contains(r.text, "pattern")) {
				t.Errorf("%s", r.text)
			}
		}
	}
	change(editor, 200)
	made := b.send("POST", "/v1/schedules", `{"cron":"@daily","time_zone":"UTC","paused":true,"campaign":"`+id+`"}`, sender...).must(t, 201)
	change(editor, 403, "forbidden")
	change(sender, 200)
	b.send("DELETE", "/v1/schedules/"+made.at(t, "id").(string), "", sender...).must(t, 204)
	change(editor, 200)
}
