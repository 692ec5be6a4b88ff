package httpapi

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/user"
)

// person makes a user and returns the answer.
func (b *bundle) person(email string, role user.Role) reply {
	b.t.Helper()
	return b.send("POST", "/v1/users", fmt.Sprintf(`{"email":%q,"role":%q}`, email, role)).must(b.t, 201)
}

// keyWith is the header of a key with these scopes.
func (b *bundle) keyWith(scopes ...string) []string {
	b.t.Helper()
	_, key, err := b.store.CreateKey(b.t.Context(), apikey.NewKey{Tenant: b.tenant, Scopes: scopes})
	if err != nil {
		b.t.Fatal(err)
	}
	return []string{"Authorization", "Bearer " + key}
}

// TestUsers_Life of one who is made over REST: the link is shown once, another one ends it, and the changes are seen.
func TestUsers_Life(t *testing.T) {
	b := setup(t)
	made := b.send("POST", "/v1/users", `{"email":" Ada@Example.com ","name":"Ada","role":"admin"}`).must(t, 201)
	id, link := made.at(t, "id").(string), made.at(t, "link").(string)
	path := "/v1/users/" + id
	token, ok := strings.CutPrefix(link, "https://console.example.com/console/set-password/")
	if !ok || made.header.Get("Location") != path {
		t.Errorf("%s", made.text)
	}
	if ends := made.timeAt(t, "link_expires_at").Sub(made.timeAt(t, "created_at")); ends < 23*time.Hour {
		t.Errorf("the link lives for %s", ends)
	}
	if u, err := b.store.UserByLink(t.Context(), user.HashLink(token)); err != nil || u.ID.String() != id {
		t.Errorf("%+v, %v", u, err)
	}
	for _, name := range []string{"link", "created_at", "link_expires_at"} {
		delete(made.body, name)
	}
	want := map[string]any{"id": id, "email": "ada@example.com", "name": "Ada", "role": "admin", "has_password": false, "external": false, "disabled": false, "disabled_at": nil, "last_sign_in_at": nil}
	if diff := cmp.Diff(want, made.body); diff != "" {
		t.Error(diff)
	}
	b.send("POST", "/v1/users", `{"email":"ADA@example.com","role":"viewer"}`).must(t, 409, "email-taken")

	again := b.send("POST", path+"/link", "").must(t, 201)
	if again.at(t, "link") == link {
		t.Error("it is the same link")
	}
	if _, err := b.store.UserByLink(t.Context(), user.HashLink(token)); err == nil {
		t.Error("the earlier link still works")
	}
	token = again.at(t, "link").(string)[len("https://console.example.com/console/set-password/"):]
	if _, err := b.store.SetPassword(t.Context(), user.HashLink(token), "$argon2id"); err != nil {
		t.Fatal(err)
	}
	if got := b.send("GET", path, "").must(t, 200); got.at(t, "has_password") != true || got.at(t, "link_expires_at") != nil {
		t.Errorf("%s", got.text)
	}

	b.person("bea@example.com", user.Admin)
	got := b.send("PATCH", path, `{"role":"editor","name":"Ada L","disabled":true}`).must(t, 200)
	if got.at(t, "role") != "editor" || got.at(t, "name") != "Ada L" || got.at(t, "disabled") != true || got.at(t, "disabled_at") == nil {
		t.Errorf("%s", got.text)
	}
	b.send("POST", path+"/link", "").must(t, 409, "user-disabled")
	if got := b.send("PATCH", path, `{"disabled":false}`).must(t, 200); got.at(t, "disabled") != false || got.at(t, "role") != "editor" {
		t.Errorf("%s", got.text)
	}
	list := b.send("GET", "/v1/users", "").must(t, 200)
	if len(list.at(t, "users").([]any)) != 2 || strings.Contains(list.text, "set-password") || strings.Contains(list.text, "argon2id") {
		t.Errorf("%s", list.text)
	}
	b.send("DELETE", path, "").must(t, 204)
	b.send("DELETE", path, "").must(t, 404, "not-found")
	if log := b.log.String(); strings.Contains(log, token) || strings.Contains(log, "example.com") {
		t.Error("the log has a link or an address")
	}
}

// TestUsers_EveryFaultAtOnce of each request.
func TestUsers_EveryFaultAtOnce(t *testing.T) {
	b := setup(t)
	for _, row := range []struct {
		method, target, body string
		want                 []string
	}{
		{"POST", "/v1/users?x=1", `{"email":"a b@c","role":"king","name":"a\nb","password":"mine"}`, []string{"query.x", "body.email", "body.role", "body.name", "body.password"}},
		{"POST", "/v1/users", `{"name":"` + strings.Repeat("n", 101) + `"}`, []string{"body.email", "body.role", "body.name"}},
		{"POST", "/v1/users", `{"email":"` + strings.Repeat("n", 254) + `@x","role":null}`, []string{"body.email", "body.role"}},
		{"GET", "/v1/users?page_size=0&page_token=x&role=admin", "", []string{"query.page_size", "query.role"}},
		{"GET", "/v1/users?page_token=x", "", []string{"query.page_token"}},
		{"GET", "/v1/users/x?y=1", "", []string{"query.y", "path.id"}},
		{"PATCH", "/v1/users/x?y=1", `{"role":"","disabled":"yes","name":"\u0000","email":"a@b"}`, []string{"query.y", "path.id", "body.role", "body.disabled", "body.name", "body.email"}},
		{"DELETE", "/v1/users/x?y=1", `{"z":1}`, []string{"query.y", "path.id", "body.z"}},
		{"POST", "/v1/users/x/link?y=1", `{"z":1}`, []string{"query.y", "path.id", "body.z"}},
		{"GET", "/v1/users/x/sessions?y=1", "", []string{"query.y", "path.id"}},
		{"DELETE", "/v1/users/x/sessions?y=1", "", []string{"query.y", "path.id"}},
		{"DELETE", "/v1/users/x/sessions/z?y=1", `{"z":1}`, []string{"query.y", "path.id", "path.session", "body.z"}},
	} {
		r := b.send(row.method, row.target, row.body).must(t, 422, "invalid-request")
		var got []string
		for _, e := range r.at(t, "errors").([]any) {
			got = append(got, e.(map[string]any)["location"].(string))
		}
		slices.Sort(got)
		slices.Sort(row.want)
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s %s: %s", row.method, row.target, diff)
		}
	}
	if n := query[int](b, `SELECT count(*) FROM users`); n != 0 {
		t.Errorf("%d users", n)
	}
}

// TestUsers_NoMoreThanOwn: no user gets a role with more scopes than the caller has, and neither does the caller.
func TestUsers_NoMoreThanOwn(t *testing.T) {
	b := setup(t)
	admin := b.person("ada@x", user.Admin).at(t, "id").(string)
	b.person("bea@x", user.Admin)
	viewer := b.person("eve@x", user.Viewer).at(t, "id").(string)
	writer := b.keyWith(append(user.Editor.Scopes(), push.ScopeUsersWrite)...)
	r := b.send("POST", "/v1/users", `{"email":"x@x","role":"sender"}`, writer...).must(t, 403, "forbidden")
	if detail := r.at(t, "detail").(string); !strings.Contains(detail, "pushes:write") || strings.Contains(detail, "policy:write") {
		t.Error(detail)
	}
	b.send("POST", "/v1/users", `{"email":"x@x","role":"editor"}`, writer...).must(t, 201)
	b.send("PATCH", "/v1/users/"+viewer, `{"role":"admin"}`, writer...).must(t, 403, "forbidden")
	b.send("PATCH", "/v1/users/"+viewer, `{"role":"editor"}`, writer...).must(t, 200)
	b.send("POST", "/v1/users/"+admin+"/link", "", writer...).must(t, 403, "forbidden")
	b.send("POST", "/v1/users/"+viewer+"/link", "", writer...).must(t, 201)
	reader := b.keyWith(push.ScopeUsersRead)
	b.send("GET", "/v1/users", "", reader...).must(t, 200)
	for _, row := range [][3]string{
		{"POST", "", `{"email":"y@x","role":"viewer"}`}, {"PATCH", "/" + viewer, `{"name":"x"}`}, {"DELETE", "/" + viewer, ""}, {"POST", "/" + viewer + "/link", ""},
		{"GET", "/" + viewer + "/sessions", ""}, {"DELETE", "/" + viewer + "/sessions", ""}, {"DELETE", "/" + viewer + "/sessions/" + viewer, ""},
	} {
		b.send(row[0], "/v1/users"+row[1], row[2], reader...).must(t, 403, "forbidden")
	}
	// A key that is older than a scope has not got it.
	b.send("GET", "/v1/users", "", b.keyWith(push.ScopeKeysWrite, push.ScopeCampaignsWrite)...).must(t, 403, "forbidden")
}

// TestUsers_EveryScopeOfTheRole: every endpoint that changes a user, or shows the sessions, needs every scope of the role that the
// user has now, whatever else it changes.
func TestUsers_EveryScopeOfTheRole(t *testing.T) {
	b := setup(t)
	b.person("last@x", user.Admin)
	const id = "0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"
	bodies := map[string][]string{"PATCH": {`{"name":"x"}`, `{"role":"viewer"}`, `{"role":"admin"}`, `{"disabled":true}`, `{"disabled":false}`, `{"disabled":false,"role":"viewer"}`}}
	tested := 0
	for _, r := range routes(t, id) {
		method, path, ofUser := r[0], r[1], strings.HasPrefix(r[1], "/v1/users/")
		if !ofUser || method != "PATCH" && method != "DELETE" && path == "/v1/users/"+id { // reading is for all
			continue
		}
		for _, body := range append(bodies[method], "")[:max(1, len(bodies[method]))] {
			for _, row := range []struct {
				role  user.Role
				given []string
				fits  bool
			}{
				{user.Viewer, user.Viewer.Scopes(), body != `{"role":"admin"}`}, {user.Editor, user.Viewer.Scopes(), false}, {user.Admin, user.Sender.Scopes(), false}, {user.Admin, push.Scopes, true},
			} {
				b.exec(`DELETE FROM users WHERE email <> 'last@x'`)
				who := b.person("ada@x", row.role).at(t, "id").(string)
				v, err := b.store.BeginSession(t.Context(), b.tenant, user.NewSession{Hash: [32]byte{byte(tested), 'r'}, User: uuid.MustParse(who), ExpiresAt: time.Now().Add(time.Hour)})
				if err != nil {
					t.Fatal(err)
				}
				target := strings.Replace(strings.Replace(path, "/v1/users/"+id, "/v1/users/"+who, 1), id, v.ID.String(), 1)
				before := query[string](b, `SELECT coalesce(string_agg(u::text || s::text, ''), '') FROM users u JOIN sessions s ON s.user_id = u.id`)
				got := b.send(method, target, body, b.keyWith(append(row.given, push.ScopeUsersWrite)...)...)
				if fits := got.status/100 == 2; fits != row.fits || !fits && got.status != 403 {
					t.Errorf("%s %s %s of a user who is %s, with %v: %d %s", method, path, body, row.role, row.given, got.status, got.text)
				}
				if after := query[string](b, `SELECT coalesce(string_agg(u::text || s::text, ''), '') FROM users u JOIN sessions s ON s.user_id = u.id`); !row.fits && after != before {
					t.Errorf("%s %s %s is refused, and changes %s to %s", method, path, body, before, after)
				}
				tested++
			}
		}
	}
	if tested != 4*(6+1+1+4) {
		t.Errorf("%d requests: is there a row for each endpoint of a user?", tested)
	}
}

// TestUsers_LastAdmin is there whatever is asked, also at the same moment.
func TestUsers_LastAdmin(t *testing.T) {
	b := setup(t)
	ada := "/v1/users/" + b.person("ada@x", user.Admin).at(t, "id").(string)
	for _, row := range [][2]string{{"DELETE", ""}, {"PATCH", `{"role":"sender"}`}, {"PATCH", `{"disabled":true}`}, {"PATCH", `{"disabled":true,"role":"admin"}`}} {
		b.send(row[0], ada, row[1]).must(t, 409, "last-admin")
	}
	if got := b.send("PATCH", ada, `{"name":"Ada"}`).must(t, 200); got.at(t, "role") != "admin" || got.at(t, "disabled") != false {
		t.Errorf("%s", got.text)
	}
	bea := "/v1/users/" + b.person("bea@x", user.Admin).at(t, "id").(string)
	var wg sync.WaitGroup
	statuses := make([]int, 2)
	for i, path := range []string{ada, bea} {
		wg.Go(func() { statuses[i] = b.send("DELETE", path, "").status })
	}
	wg.Wait()
	if slices.Sort(statuses); !slices.Equal(statuses, []int{204, 409}) {
		t.Errorf("%v", statuses)
	}
}

func TestUsers_MaxPerTenant(t *testing.T) {
	b := setup(t)
	for i := range 6 {
		b.person(fmt.Sprintf("u%d@x", i), user.Viewer)
	}
	b.send("POST", "/v1/users", `{"email":"u7@x","role":"viewer"}`).must(t, 409, "too-many-users")
	b.send("POST", "/v1/users", `{"email":"u7@x","role":"viewer"}`, "Authorization", "Bearer "+b.other).must(t, 201)
}

// TestUsers_Pages lists each user once, the oldest first.
func TestUsers_Pages(t *testing.T) {
	b := setup(t)
	var want, got []string
	for i := range 5 {
		want = append(want, b.person(fmt.Sprintf("u%d@x", i), user.Viewer).at(t, "id").(string))
	}
	for token := ""; ; {
		page := b.send("GET", "/v1/users?page_size=2&page_token="+token, "").must(t, 200)
		for _, u := range page.at(t, "users").([]any) {
			got = append(got, u.(map[string]any)["id"].(string))
		}
		if token = page.at(t, "next_page_token").(string); token == "" {
			break
		}
		b.send("GET", "/v1/users?page_token="+token, "", "Authorization", "Bearer "+b.other).must(t, 422, "invalid-request")
		b.send("GET", "/v1/keys?page_token="+token, "").must(t, 422, "invalid-request")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestSessions_ListAndEnd: an admin sees and ends all, and a user the own ones.
func TestSessions_ListAndEnd(t *testing.T) {
	b := setup(t)
	ada, bea := b.person("ada@x", user.Admin).at(t, "id").(string), b.person("bea@x", user.Viewer).at(t, "id").(string)
	begin := func(id string, n byte) string {
		v, err := b.store.BeginSession(t.Context(), b.tenant, user.NewSession{Hash: [32]byte{n}, User: uuid.MustParse(id), ExpiresAt: time.Now().Add(time.Hour), Address: "192.0.2.7", UserAgent: "Firefox"})
		if err != nil {
			t.Fatal(err)
		}
		return v.ID.String()
	}
	first, second, other := begin(bea, 1), begin(bea, 2), begin(ada, 3)
	list := b.send("GET", "/v1/users/"+bea+"/sessions", "").must(t, 200)
	all := list.at(t, "sessions").([]any)
	if len(all) != 2 || list.at(t, "sessions", 0, "id") != second || list.at(t, "sessions", 1, "address") != "192.0.2.7" || list.at(t, "sessions", 1, "user_agent") != "Firefox" {
		t.Errorf("%s", list.text)
	}
	viewer := user.User{ID: uuid.MustParse(bea), Tenant: b.tenant, Role: user.Viewer}
	as := func(method, target string) int {
		rec := httptest.NewRecorder()
		b.api.ServeHTTP(rec, httptest.NewRequestWithContext(rest.WithCaller(t.Context(), viewer.Caller()), method, target, nil))
		return rec.Code
	}
	for _, row := range []struct {
		method, target string
		want           int
	}{
		{"GET", "/v1/users/" + bea + "/sessions", 200}, {"GET", "/v1/users/" + ada + "/sessions", 403}, {"DELETE", "/v1/users/" + ada + "/sessions", 403},
		{"DELETE", "/v1/users/" + ada + "/sessions/" + other, 403}, {"DELETE", "/v1/users/" + bea + "/sessions/" + other, 404}, {"DELETE", "/v1/users/" + bea + "/sessions/" + uuid.Nil.String(), 404},
		{"DELETE", "/v1/users/" + bea + "/sessions/" + first, 204}, {"DELETE", "/v1/users/" + bea + "/sessions/" + first, 404},
	} {
		if got := as(row.method, row.target); got != row.want {
			t.Errorf("%s %s: %d, want %d", row.method, row.target, got, row.want)
		}
	}
	if got := b.send("DELETE", "/v1/users/"+bea+"/sessions", "").must(t, 200); got.at(t, "ended") != 1.0 {
		t.Errorf("%s", got.text)
	}
	b.send("DELETE", "/v1/users/"+ada+"/sessions/"+other, "").must(t, 204)
	if n := query[int](b, `SELECT count(*) FROM sessions`); n != 0 {
		t.Errorf("%d sessions", n)
	}
}

// TestCampaigns_DraftScope: whoever may draft may not start, and keeps no schedules.
func TestCampaigns_DraftScope(t *testing.T) {
	b := setup(t)
	drafter := b.keyWith(push.ScopeCampaignsDraft)
	id := b.send("POST", "/v1/campaigns", `{"message":{"body":"x"}}`, drafter...).must(t, 201).at(t, "id").(string)
	b.send("PATCH", "/v1/campaigns/"+id, `{"name":"n"}`, drafter...).must(t, 200)
	b.send("PUT", "/v1/campaigns/"+id+"/audience", "recipient\na\n", append(drafter, "Content-Type", "text/csv")...).must(t, 200)
	b.send("GET", "/v1/campaigns", "", drafter...).must(t, 200)
	for _, action := range []string{"start", "pause", "resume", "cancel"} {
		b.send("POST", "/v1/campaigns/"+id+"/"+action, "", drafter...).must(t, 403, "forbidden")
	}
	b.send("POST", "/v1/schedules", `{"cron":"@daily","campaign":"`+id+`"}`, drafter...).must(t, 403, "forbidden")
	b.send("DELETE", "/v1/campaigns/"+id, "", drafter...).must(t, 204)
	b.send("POST", "/v1/campaigns", `{"message":{"body":"x"}}`, b.keyWith(push.ScopeCampaignsWrite)...).must(t, 201)
	b.send("POST", "/v1/campaigns", `{"message":{"body":"x"}}`, b.keyWith(push.ScopeCampaignsRead)...).must(t, 403, "forbidden")
}
