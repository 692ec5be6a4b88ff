package httpapi

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// wholePolicy has everything that a policy can say.
const wholePolicy = `{"rules": [
	{"name": "per-minute", "limit": 1, "window": "1m"},
	{"name": "marketing-week", "limit": 3, "per": "week", "week_start": "monday", "zone": "recipient", "categories": ["marketing"]},
	{"name": "sms-day", "limit": 2, "per": "day", "zone": "Europe/Berlin", "channels": ["sms"]},
	{"name": "trial", "limit": 1, "window": "6h", "shadow": true}],
	"categories": {"transactional": {"bypass": true, "counts": false}, "receipts": {"reserve": {"marketing-week": 0}}},
	"quiet_hours": [{"name": "night", "from": "22:00", "until": "08:00", "zone": "recipient", "days": ["mon", "tue"], "categories": ["marketing"], "channels": ["sms"], "action": "defer"}],
	"default_zone": "UTC"}`

// otherProcess is another API on the same servers.
func (b *bundle) otherProcess() *bundle {
	b.t.Helper()
	other := &bundle{t: b.t, url: b.url, rdb: b.rdb, tenant: b.tenant, key: b.key, other: b.other}
	var err error
	if other.store, err = store.Open(b.t.Context(), b.url, patientStore()); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(other.store.Close)
	other.api = New(other.service(other.store, testPolicy()), other.store, Config{
		RequestTimeout: patience, Log: slog.New(slog.DiscardHandler), Now: other.now, Policies: policiesOf(other.store, testPolicy()),
	})
	return other
}

// TestPolicy goes through the life of a policy: the file's, one of the tenant's own, the next one, and back.
func TestPolicy(t *testing.T) {
	b := setup(t)
	first := b.send("GET", "/v1/policy", "").must(t, 200)
	if first.at(t, "version") != 0.0 || first.at(t, "source") != "file" || first.at(t, "rules", 0, "name") != "per-minute" || first.header.Get("Etag") != `"0"` {
		t.Errorf("%v %s", first.header, first.text)
	}
	whole := strings.Replace(wholePolicy, `"receipts": {"reserve": {"marketing-week": 0}}`, `"receipts": {"reserve": {"per-minute": 1}}`, 1)
	put := b.send("PUT", "/v1/policy", whole, "If-Match", `"0"`).must(t, 200)
	if put.at(t, "version") != 1.0 || put.at(t, "source") != "tenant" || put.header.Get("Etag") != `"1"` {
		t.Errorf("%v %s", put.header, put.text)
	}
	got := b.send("GET", "/v1/policy", "").must(t, 200)
	if want := strings.Replace(put.text, `,"rechecked":0`, "", 1); got.text != want {
		t.Errorf("GET %s, want %s", got.text, want)
	}
	for _, one := range []struct {
		path []any
		want any
	}{
		{[]any{"rules", 1, "per"}, "week"}, {[]any{"rules", 1, "zone"}, "recipient"}, {[]any{"rules", 2, "channels", 0}, "sms"}, {[]any{"rules", 3, "shadow"}, true},
		{[]any{"categories", "transactional", "counts"}, false}, {[]any{"categories", "receipts", "reserve", "per-minute"}, 1.0},
		{[]any{"quiet_hours", 0, "days", 1}, "tue"}, {[]any{"quiet_hours", 0, "action"}, "defer"}, {[]any{"default_zone"}, "UTC"},
	} {
		if v := got.at(t, one.path...); v != one.want {
			t.Errorf("%v is %v, want %v", one.path, v, one.want)
		}
	}
	// The answer can be sent back.
	if again := b.send("PUT", "/v1/policy", got.text).must(t, 200); again.at(t, "version") != 2.0 {
		t.Errorf("sent back: %s", again.text)
	}
	for _, ifMatch := range []string{`"1"`, "1", `W/"0"`, `"0", "1"`} {
		if stale := b.send("PUT", "/v1/policy", `{}`, "If-Match", ifMatch).must(t, 412, "stale-policy"); !strings.Contains(stale.at(t, "detail").(string), "version 2") {
			t.Errorf("%s: %s", ifMatch, stale.text)
		}
		b.send("DELETE", "/v1/policy", "", "If-Match", ifMatch).must(t, 412, "stale-policy")
		b.send("PUT", "/v1/policy?forecast=true", `{}`, "If-Match", ifMatch).must(t, 412, "stale-policy")
	}
	b.send("PUT", "/v1/policy", `{}`, "If-Match", `"of something else"`).must(t, 412, "stale-policy")
	none := b.send("PUT", "/v1/policy", `{}`, "If-Match", `"1", "2"`).must(t, 200)
	if none.at(t, "version") != 3.0 || len(none.at(t, "rules").([]any)) != 0 {
		t.Errorf("no rules: %s", none.text)
	}
	b.send("PUT", "/v1/policy", `{}`, "If-Match", `*`).must(t, 200)
	back := b.send("DELETE", "/v1/policy", "", "If-Match", `"4"`).must(t, 200)
	if back.at(t, "version") != 5.0 || back.at(t, "source") != "file" || back.at(t, "rules", 2, "name") != "per-day" {
		t.Errorf("deleted: %s", back.text)
	}
	if again := b.send("DELETE", "/v1/policy", "").must(t, 200); again.at(t, "version") != 5.0 {
		t.Errorf("deleted again: %s", again.text)
	}

	versions := b.send("GET", "/v1/policy/versions", "").must(t, 200)
	all := versions.at(t, "versions").([]any)
	if len(all) != 5 || versions.at(t, "versions", 0, "version") != 5.0 || versions.at(t, "versions", 0, "policy") != nil || versions.at(t, "next_page_token") != "" ||
		versions.at(t, "versions", 4, "policy", "rules", 3, "name") != "trial" || versions.at(t, "versions", 4, "by") != b.keyID() {
		t.Errorf("versions: %s", versions.text)
	}
	var pages []any
	for token := ""; ; {
		page := b.send("GET", "/v1/policy/versions?page_size=2&page_token="+token, "").must(t, 200)
		pages = append(pages, page.at(t, "versions").([]any)...)
		if token = page.at(t, "next_page_token").(string); token == "" {
			break
		}
	}
	if diff := cmp.Diff(all, pages); diff != "" {
		t.Errorf("in pages (-whole +pages):\n%s", diff)
	}
	// Other tenants have their own.
	if got := b.send("GET", "/v1/policy", "", "Authorization", "Bearer "+b.other).must(t, 200); got.at(t, "version") != 0.0 {
		t.Errorf("another tenant's: %s", got.text)
	}
}

// TestPolicy_Errors: all that is wrong with a policy is said at once, with its place and value.
func TestPolicy_Errors(t *testing.T) {
	b := setup(t)
	for name, row := range map[string]struct {
		body string
		want string // places and messages, in any order
	}{
		"unknown zone":         {`{"default_zone":"Europe/Berln"}`, "body.default_zone nearest name is Europe/Berlin"},
		"zone of a rule":       {`{"rules":[{"name":"a","limit":1,"per":"day","zone":"Mars/Base"}]}`, "body.rules[0].zone there is no time zone"},
		"empty scopes":         {`{"rules":[{"name":"a","limit":1,"window":"1m","channels":[],"categories":[]}]}`, "body.rules[0].channels must not be empty|body.rules[0].categories must not be empty"},
		"unknown channel":      {`{"rules":[{"name":"a","limit":1,"window":"1m","channels":["fax"]}]}`, "body.rules[0].channels[0] no such channel"},
		"window and per":       {`{"rules":[{"name":"a","limit":1,"window":"1m","per":"day"}]}`, "body.rules[0].per must not be given together with window"},
		"neither":              {`{"rules":[{"name":"a","limit":1}]}`, "body.rules[0].window is required"},
		"no limit":             {`{"rules":[{"name":"a","window":"1m"}]}`, "body.rules[0].limit is required"},
		"reserves too large":   {`{"rules":[{"name":"a","limit":3,"window":"1m"}],"categories":{"x":{"reserve":{"a":2}},"y":{"reserve":{"a":2}}}}`, "body.categories.y.reserve.a 4 places of the rule's 3"},
		"reserve without rule": {`{"categories":{"x":{"reserve":{"a":2}}}}`, "body.categories.x.reserve.a there is no rule of this name"},
		"quiet all day":        {`{"quiet_hours":[{"name":"q","from":"00:00","until":"24:00"}]}`, "body.quiet_hours leave no minute of a week free"},
		"names twice":          {`{"rules":[{"name":"a","limit":1,"window":"1m"}],"quiet_hours":[{"name":"a","from":"22:00","until":"08:00"}]}`, "body.quiet_hours[0].name must be unique"},
		"unknown members":      {`{"rule":[],"rules":[{"name":"a","limit":1,"window":"1m","burst":3}]}`, "body.rule unexpected property|body.rules[0].burst unexpected property"},
		"wrong types":          {`{"rules":[7,{"name":"a","limit":"1","window":60}],"categories":[],"quiet_hours":{}}`, "body.rules[0] must be an object|body.rules[1].limit must be a whole number|body.rules[1].window must be a string|body.categories must be an object|body.quiet_hours must be an array"},
		"zone without per":     {`{"rules":[{"name":"a","limit":1,"window":"1m","zone":"UTC","week_start":"monday"}]}`, "body.rules[0].zone is only for rules with per|body.rules[0].week_start is only for rules with per: week"},
		"times of day":         {`{"quiet_hours":[{"name":"q","from":"7pm","until":"08:60","days":["mo"],"action":"wait"}]}`, "body.quiet_hours[0].from must be a time of day|body.quiet_hours[0].until must be a time of day|body.quiet_hours[0].days[0] must be mon|body.quiet_hours[0].action must be one of"},
		"null":                 {`{"rules":null}`, "body.rules must be an array"},
		"too many":             {`{"rules":[` + strings.Repeat(`{"name":"a","limit":1,"window":"1m"},`, 50) + `{"name":"a","limit":1,"window":"1m"}]}`, "body.rules must have 0 to 50"},
		"no object":            {`[]`, "body must be an object"},
	} {
		t.Run(name, func(t *testing.T) {
			r := b.send("PUT", "/v1/policy", row.body).must(t, 422, "invalid-request")
			faults := r.at(t, "errors").([]any)
			wanted := strings.Split(row.want, "|")
			if name != "too many" && len(faults) != len(wanted) {
				t.Errorf("%d faults, want %d: %s", len(faults), len(wanted), r.text)
			}
			for _, want := range wanted {
				place, message, _ := strings.Cut(want, " ")
				found := false
				for i := range faults {
					found = found || r.at(t, "errors", i, "location") == place && strings.Contains(r.at(t, "errors", i, "message").(string), message)
				}
				if !found {
					t.Errorf("no fault %q: %s", want, r.text)
				}
			}
			b.send("PUT", "/v1/policy?forecast=true", row.body).must(t, 422, "invalid-request")
		})
	}
	for _, header := range []string{"x", `"1`, "-1", "1.5", ""} {
		r := b.send("PUT", "/v1/policy?apply=all&forecast=maybe", `{"rules":[{"name":"a","limit":1}]}`, "If-Match", header+" ")
		if got := len(r.must(t, 422, "invalid-request").at(t, "errors").([]any)); got != 4 {
			t.Errorf("If-Match %q: %d faults: %s", header, got, r.text)
		}
	}
	if v := b.send("GET", "/v1/policy", "").must(t, 200).at(t, "version"); v != 0.0 {
		t.Errorf("a faulty policy became version %v", v)
	}
}

// TestPolicy_Scopes: who may write may read, and not the other way round.
func TestPolicy_Scopes(t *testing.T) {
	b := setup(t)
	_, reader := b.newTenant("reader", push.ScopePolicyRead)
	_, writer := b.newTenant("writer", push.ScopePolicyWrite)
	_, neither := b.newTenant("neither", push.ScopeRead, push.ScopeWrite)
	for _, row := range []struct {
		key, method string
		want        int
	}{
		{reader, "GET", 200}, {reader, "PUT", 403}, {reader, "DELETE", 403}, {writer, "GET", 200}, {writer, "PUT", 200}, {writer, "DELETE", 200},
		{neither, "GET", 403}, {neither, "PUT", 403},
	} {
		body := map[string]string{"PUT": "{}"}[row.method]
		if got := b.send(row.method, "/v1/policy", body, "Authorization", "Bearer "+row.key); got.status != row.want {
			t.Errorf("%s: %d, want %d: %s", row.method, got.status, row.want, got.text)
		}
	}
}

// TestPolicy_InForce: what is submitted after the answer to a change is decided by the new policy, in every process, whatever
// the processes have seen before, and under load.
func TestPolicy_InForce(t *testing.T) {
	b := setup(t)
	processes := []*bundle{b, b.otherProcess()}
	const open, closed = `{"rules":[]}`, `{"rules":[{"name":"never","limit":0,"window":"1m"}]}`
	allowed := map[string]int{open: 201, closed: 409}
	// The load keeps both processes busy with the tenant, whose policy they know.
	stop := make(chan struct{})
	var load sync.WaitGroup
	defer func() { close(stop); load.Wait() }()
	for i := range 4 {
		load.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					processes[i%2].send("POST", "/v1/pushes", pushBody(fmt.Sprintf("load-%d-%d", i, n), b.in(time.Hour), ""))
				}
			}
		})
	}
	for n := range 30 {
		policy := []string{closed, open}[n%2]
		processes[n/2%2].send("PUT", "/v1/policy", policy).must(t, 200)
		var asks sync.WaitGroup
		for i := range 6 {
			asks.Go(func() {
				who, at := fmt.Sprintf("user-%d-%d", n, i), b.in(time.Hour)
				of := processes[i%2]
				if got := of.send("POST", "/v1/pushes", pushBody(who, at, "")); got.status != allowed[policy] {
					t.Errorf("round %d: a submit in process %d: %d, want %d: %s", n, i%2, got.status, allowed[policy], got.text)
				}
				if got := of.send("POST", "/v1/quota/check", `{"recipient":"`+who+`x","send_at":"`+at+`"}`); got.body["allowed"] != (policy == open) {
					t.Errorf("round %d: a check in process %d: %s", n, i%2, got.text)
				}
				batch := of.send("POST", "/v1/pushes/batch", `{"pushes":[`+pushBody(who+"y", at, "")+`]}`)
				if got := batch.at(t, "results", 0, "status"); got != float64(allowed[policy]) {
					t.Errorf("round %d: a batch in process %d: %s", n, i%2, batch.text)
				}
			})
		}
		asks.Wait()
	}
	processes[1].send("DELETE", "/v1/policy", "").must(t, 200)
	if got := b.send("GET", "/v1/recipients/anna/quota", "").must(t, 200); got.at(t, "rules", 0, "rule") != "per-minute" {
		t.Errorf("after going back to the file: %s", got.text)
	}
}

// TestPolicy_Concurrent: of changes that were made for the same version, one is made.
func TestPolicy_Concurrent(t *testing.T) {
	b := setup(t)
	processes := []*bundle{b, b.otherProcess()}
	for version := range 5 {
		var (
			all  sync.WaitGroup
			mu   sync.Mutex
			made = map[int]int{}
		)
		for i := range 8 {
			all.Go(func() {
				got := processes[i%2].send("PUT", "/v1/policy", fmt.Sprintf(`{"rules":[{"name":"rule-%d","limit":1,"window":"1m"}]}`, i), "If-Match", fmt.Sprintf(`"%d"`, version))
				mu.Lock()
				defer mu.Unlock()
				made[got.status]++
			})
		}
		all.Wait()
		if made[200] != 1 || made[412] != 7 {
			t.Errorf("version %d: %v", version, made)
		}
	}
}
