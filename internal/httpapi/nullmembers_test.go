package httpapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// TestBody_NullMembers sends null to the real server in the place of every member of every request, at every depth: it is
// refused exactly where the schema does not allow it.
func TestBody_NullMembers(t *testing.T) {
	b := setup(t)
	a := newTestAPI()
	schemas := a.Document().Components.Schemas
	// Members that examples leave out, so that every member of every schema is present.
	more := map[string]string{
		"submit-push": `{"recipient":"r","template":true,"variables":{"a":1},"message":{"title":"t","body":"b","html":"h","headers":{"X-A":"a"},"cc":"a","bcc":"a","reply_to":"a","from":"a","attachments":"a","aps":{},"data":{"a":1},"other":1},"channel":"push","category":"c","to":"+4512345678",
			"send_at":"SOON","expires_at":"LATER","on_conflict":"defer","latest":"LATER","metadata":{"a":1}}`,
		"take-limits":   `{"key":"k","cost":1,"dry_run":true,"limits":[{"key":"k","algorithm":"token_bucket","limit":5,"per":"1s","burst":3,"refill":"interval"},{"key":"k","algorithm":"fixed_window","limit":5,"per":"1s","aligned":true},{"key":"k","algorithm":"sliding_window","limit":5,"per":"1s","precision":"100ms"}]}`,
		"refund-limits": `{"key":"k","cost":1,"dry_run":true,"limits":[{"key":"k","algorithm":"leaky_bucket","limit":5,"per":"1s"}]}`,
		"reset-limits":  `{"key":"k","cost":1,"dry_run":true,"limits":[{"key":"k","algorithm":"leaky_bucket","limit":5,"per":"1s"}]}`,
		"put-policy": `{"version":1,"source":"tenant","default_zone":"UTC","rules":[
			{"name":"a","limit":9,"window":"1h","channels":["sms"],"categories":["c"],"shadow":true},
			{"name":"b","limit":9,"per":"week","week_start":"monday","zone":"recipient","channels":["sms"],"categories":["c"],"shadow":false}],
			"categories":{"c":{"bypass":true,"counts":true,"reserve":{"a":1}}},
			"quiet_hours":[{"name":"q","from":"22:00","until":"08:00","days":["mon"],"zone":"UTC","channels":["sms"],"categories":["c"],"action":"defer"}]}`,
		"create-schedule": `{"name":"n","cron":"@daily","time_zone":"UTC","campaign":null,"catch_up":"last","paused":true,"until":"LATER",
			"push":{"recipient":"r","template":true,"variables":{"a":1},"message":{"title":"t","body":"b","html":"h","headers":{"X-A":"a"},"cc":"a","bcc":"a","reply_to":"a","from":"a","attachments":"a","aps":{},"data":{"a":1},"other":1},"channel":"push","category":"c","to":"+4512345678",
				"expires_at":"LATER","expires_after":"4h","on_conflict":"defer","latest":"LATER","metadata":{"a":1}}}`,
		"put-recipient": `{"recipient":"0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01","time_zone":"UTC","addresses":{"push":"t"},"opt_outs":{"all":false,"channels":["push"],"categories":["c"]},
			"limits":[{"rule":"r","limit":1}],"attributes":{"a":1},"created_at":"SOON","updated_at":"SOON"}`,
		"create-campaign": `{"name":"n","channel":"push","category":"c","send_at":"SOON","spread":"30m","on_conflict":"defer","latest":"LATER","expires_after":"4h",
			"message":{"title":"t","body":"b","html":"h","headers":{"X-A":"a"},"cc":"a","bcc":"a","reply_to":"a","from":"a","attachments":"a","aps":{},"data":{"a":1},"other":1},"metadata":{"a":1}}`,
		"retry-push": `{"send_at":"SOON","expires_at":"LATER","on_conflict":"defer","latest":"LATER"}`,
		"create-bulk-change": `{"action":"move","send_at":"LATER","all":false,"filter":{"recipient":"r","channel":"push","category":"c",
			"campaign":"0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01","from":"SOON","until":"LATER"}}`,
		"preview-campaign": `{"recipient":"r","longest":false}`, "change-user": `{"name":"n","role":"viewer","disabled":false}`,
		"create-pause": `{"scope":"all","name":null,"reason":"r","until":"LATER"}`,
		"check-quota":  `{"recipient":"r","channel":"push","category":"c","send_at":"SOON","template":true,"variables":{"a":1},"message":{"title":"t","body":"b","html":"h","headers":{"X-A":"a"},"cc":"a","bcc":"a","reply_to":"a","from":"a","attachments":"a","aps":{},"data":{"a":1},"other":1}}`,
	}
	more["submit-batch"] = `{"atomic":true,"pushes":[` + more["submit-push"] + `]}`
	more["change-schedule"], more["change-campaign"], more["simulate-campaign"] = more["create-schedule"], more["create-campaign"], more["create-campaign"]
	campaign := b.send("POST", "/v1/campaigns", `{"message":{}}`).must(t, 201).at(t, "id").(string)
	schedule := b.send("POST", "/v1/schedules", `{"cron":"@daily","push":{"recipient":"r","message":{}}}`).must(t, 201).at(t, "id").(string)
	bodies, nulls := 0, 0
	for _, op := range operationsOf(a.Document()) {
		if op.RequestBody == nil || op.RequestBody.Content["application/json"] == nil {
			continue
		}
		if op.OperationID == "put-channel" { // its members depend on the type: internal/config tests them
			continue
		}
		bodies++
		media := op.RequestBody.Content["application/json"]
		text := more[op.OperationID]
		if text == "" {
			text = string(media.Example.(json.RawMessage))
		}
		text = strings.NewReplacer("SOON", b.in(time.Hour), "LATER", b.in(3*time.Hour), "2026-12-01T10:00:00Z", b.in(2*time.Hour)).Replace(text)
		path := strings.ReplaceAll(op.Path, "{id}", "0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01")
		if strings.HasPrefix(path, "/v1/schedules/") {
			path = "/v1/schedules/" + schedule
		}
		if strings.HasPrefix(path, "/v1/campaigns/") {
			path = strings.ReplaceAll(op.Path, "{id}", campaign)
		}
		var whole any
		if err := json.Unmarshal([]byte(text), &whole); err != nil {
			t.Fatal(err)
		}
		complete(t, schemas, op.OperationID, media.Schema, whole)
		for _, place := range places(whole, nil) {
			body, err := json.Marshal(without(whole, place))
			if err != nil {
				t.Fatal(err)
			}
			allowed := allowsNull(schemas, media.Schema, place)
			r := b.send(op.Method, path, string(body))
			accepted := r.status != 422 && r.status != 400
			if nulls++; accepted != allowed {
				t.Errorf("%s: null at %v: the schema allows it: %t, the server: %d %s", op.OperationID, place, allowed, r.status, r.text)
			}
		}
	}
	if bodies < 7 || nulls < 50 {
		t.Errorf("%d nulls in %d kinds of requests", nulls, bodies)
	}
}

// allowsNull reports whether a schema allows null at a place: where it says so, and where it says nothing.
func allowsNull(schemas huma.Registry, s *huma.Schema, place []any) bool {
	for _, step := range place {
		if s.Ref != "" {
			s = schemas.SchemaFromRef(s.Ref)
		}
		if name, member := step.(string); !member {
			s = s.Items
		} else if more, own := s.AdditionalProperties.(*huma.Schema); own && s.Properties[name] == nil {
			s = more // a member of the caller's own
		} else if s = s.Properties[name]; s == nil {
			return true
		}
	}
	return s.Ref == "" && (s.Type == "" || s.Nullable)
}

// ofSomeLimits are members that are for other algorithms, for limits about another subject, or for rules of another kind, or that
// are not given together with send_at.
var ofSomeLimits = map[string]bool{
	"burst": true, "precision": true, "aligned": true, "refill": true, "window": true, "per": true, "week_start": true, "zone": true,
	"local_time": true, "time_zone": true, "shift": true,
}

// complete demands that a body has every member that its schema names.
func complete(t *testing.T, schemas huma.Registry, name string, s *huma.Schema, v any) {
	t.Helper()
	if s.Ref != "" {
		s = schemas.SchemaFromRef(s.Ref)
	}
	switch v := v.(type) {
	case map[string]any:
		for member, schema := range s.Properties {
			if _, has := v[member]; !has && !ofSomeLimits[member] {
				t.Errorf("%s: the test has no %s", name, member)
			}
			complete(t, schemas, name, schema, v[member])
		}
	case []any:
		for _, one := range v {
			complete(t, schemas, name, s.Items, one)
		}
	}
}

// places lists where something stands in a JSON value, the whole included.
func places(v any, at []any) [][]any {
	all := [][]any{slices.Clone(at)}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(all, places(v[name], append(at, name))...)
		}
	case []any:
		for i := range v {
			all = append(all, places(v[i], append(at, i))...)
		}
	}
	return all
}

// without is a copy of a JSON value with null in one place.
func without(v any, at []any) any {
	if len(at) == 0 {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		c := maps.Clone(v)
		name := at[0].(string)
		c[name] = without(v[name], at[1:])
		return c
	case []any:
		c := slices.Clone(v)
		i := at[0].(int)
		c[i] = without(v[i], at[1:])
		return c
	}
	return v
}
