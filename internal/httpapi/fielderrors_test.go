package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/rest"
)

func rule(name string, limit int, window time.Duration) quota.Rule {
	return quota.Rule{Name: name, Limit: limit, Window: window}
}

// locationsOf lists where the faults of a problem are.
func locationsOf(t *testing.T, problem any) string {
	t.Helper()
	var locations []string
	errs, _ := problem.(map[string]any)["errors"].([]any)
	for _, e := range errs {
		locations = append(locations, e.(map[string]any)["location"].(string))
	}
	slices.Sort(locations)
	return strings.Join(locations, " ")
}

// TestFieldErrors sends bad requests. Each is answered with every fault, its place and what was there, and leaves nothing
// behind.
func TestFieldErrors(t *testing.T) {
	b := setup(t)
	in := b.in
	submit := func(body string) [3]string { return [3]string{"POST", "/v1/pushes", body} }
	with := func(member string) [3]string {
		return submit(`{"recipient":"user-1","message":{"body":"x"},` + member + `}`)
	}
	recipient := func(r string) [3]string { return submit(`{"recipient":` + r + `,"message":{}}`) }
	get := func(target string) [3]string { return [3]string{"GET", target, ""} }
	deep := strings.Repeat(`{"a":`, 101) + "1" + strings.Repeat("}", 101)
	const id = "/v1/pushes/0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"

	for _, c := range []struct {
		name    string
		request [3]string
		headers []string
		status  int
		want    []string // location, part of the message, value
	}{
		{"no body", submit(""), nil, 400, []string{"body", "line 1, column 1: it ends too early", ""}},
		{"cut off", submit("{\n \"recipient\": \"a"), nil, 400, []string{"body", "line 2", ""}},
		{"garbage", submit(`{"recipient"}`), nil, 400, []string{"body", "':'", ""}},
		{"trailing garbage", submit(`{"recipient":"a","message":{}} x`), nil, 400, []string{"body", "line 1, column 32", ""}},
		{"trailing comma", submit(`{"recipient":"a",}`), nil, 400, []string{"body", "column 17", ""}},
		{"raw control character", submit("{\"recipient\":\"a\nb\"}"), nil, 400, []string{"body", "non-control character", ""}},
		{"invalid UTF-8", submit("{\"recipient\":\"\xff\"}"), nil, 400, []string{"body", "UTF-8", ""}},
		{"two values", submit(`[]{}`), nil, 400, []string{"body", "something follows", ""}},
		{"no object", submit(`[1]`), nil, 422, []string{"body", "must be an object", "[1]"}},
		{"nothing there", submit(`{}`), nil, 422, []string{"body.message", "is required", "", "body.recipient", "is required", ""}},
		{"unknown fields", with(`"foo":1,"Channel":"push"`), nil, 422, []string{"body.Channel", "unexpected", "push", "body.foo", "unexpected", "1"}},
		{"local time", with(`"local_time":"09:00","time_zone":"Europe/Berlin","send_at":"` + in(time.Hour) + `"`), nil, 422,
			[]string{"body.local_time", "must be a local time", "09:00"}},
		{"wrong types", submit(`{"recipient":5,"message":"x","channel":null,"category":[],"send_at":1,"to":{},"metadata":[1],"on_conflict":true,"expires_at":false,"latest":0}`), nil, 422,
			[]string{"body.category", "string", "[]", "body.channel", "string", "null", "body.expires_at", "string", "false", "body.latest", "string", "0",
				"body.message", "object", "x", "body.metadata", "object", "[1]", "body.on_conflict", "string", "true", "body.recipient", "string", "5",
				"body.send_at", "string", "1", "body.to", "string", "{}"}},
		{"message parts", submit(`{"recipient":"a","message":{"title":1,"body":null,"data":[1],"more":2}}`), nil, 422,
			[]string{"body.message.body", "string", "null", "body.message.title", "string", "1"}},
		{"recipient empty", recipient(`""`), nil, 422, []string{"body.recipient", "empty", ""}},
		{"recipient of 129 bytes", recipient(`"` + strings.Repeat("x", 129) + `"`), nil, 422, []string{"body.recipient", "at most 128 bytes, has 129", strings.Repeat("x", 129)}},
		{"recipient of 65 letters of 2 bytes", recipient(`"` + strings.Repeat("ü", 65) + `"`), nil, 422, []string{"body.recipient", "has 130", strings.Repeat("ü", 65)}},
		{"recipient with a control character", recipient(`"a\tb"`), nil, 422, []string{"body.recipient", "U+0009", "a\tb"}},
		{"recipient with NUL", recipient(`"a\u0000"`), nil, 422, []string{"body.recipient", "U+0000", "a\x00"}},
		{"recipient with an invisible character", recipient(`"a\u200b"`), nil, 422, []string{"body.recipient", "U+200B", "a\u200b"}},
		{"recipient with half a character", recipient(`"a\ud800"`), nil, 422, []string{"body.recipient", "surrogate", "a\ufffd"}},
		{"half a character, anywhere", submit(`{"recipient":"a","message":{"title":"\ud800","data":{"a":["x",{"b":"\uDC00y"}],"\ud800k":1},"html":"\ud83d\ude00"},"metadata":{"half":"a\ud800"}}`), nil, 422,
			[]string{"body.message.data.a[1].b", "surrogate", "\ufffdy", "body.message.data.\ufffdk", "name", "\ufffdk", "body.message.title", "surrogate", "\ufffd", "body.metadata.half", "surrogate", "a\ufffd"}},
		{"half a character of a variable", with(`"template":true,"variables":{"a":{"b":["\udfff"]}}`), nil, 422, []string{"body.variables.a.b[0]", "surrogate", "\ufffd"}},
		{"half a character of an attribute", [3]string{"PUT", "/v1/recipients/a", `{"attributes":{"a":"\ud800"},"addresses":{"\ud800":"x"},"created_at":"\ud800"}`}, nil, 422,
			[]string{"body.addresses.\ufffd", "surrogate", "\ufffd", "body.attributes.a", "surrogate", "\ufffd", "body.created_at", "surrogate", "\ufffd"}},
		{"half a character of a campaign", [3]string{"POST", "/v1/campaigns", `{"message":{"body":["\ud800"]},"metadata":{"a":"\ud800"}}`}, nil, 422,
			[]string{"body.message.body", "string", "[\ufffd]", "body.message.body[0]", "surrogate", "\ufffd", "body.metadata.a", "surrogate", "\ufffd"}},
		{"half a character in a batch", [3]string{"POST", "/v1/pushes/batch", `{"atomic":true,"pushes":[{"recipient":"a","message":{"body":"b"}},{"recipient":"a","message":{"x":"\ud800"}}]}`}, nil, 422,
			[]string{"body.pushes[1].message.x", "surrogate", "\ufffd"}},
		{"numbers that are no integers", [3]string{"POST", "/v1/limits/take", `{"key":"a","cost":5.5,"limits":[{"algorithm":"fixed_window","limit":1e-1,"per":"1m"},{"algorithm":"fixed_window","limit":1e99,"per":"1m"},{"algorithm":"fixed_window","limit":"5.0","per":"1m"}]}`}, nil, 422,
			[]string{"body.cost", "whole number", "5.5", "body.limits[0].limit", "whole number", "0.1", "body.limits[1].limit", "whole number", "1e+99", "body.limits[2].limit", "whole number", "5.0"}},
		{"long texts", with(`"category":"` + strings.Repeat("c", 65) + `","to":"` + strings.Repeat("t", 513) + `"`), nil, 422,
			[]string{"body.category", "at most 64", strings.Repeat("c", 65), "body.to", "at most 512", strings.Repeat("t", 256) + "…"}},
		{"unknown channel", with(`"channel":"fax"`), nil, 422, []string{"body.channel", "push, sms", "fax"}},
		{"unknown word", with(`"on_conflict":"maybe"`), nil, 422, []string{"body.on_conflict", "reject, defer", "maybe"}},
		{"no zone", with(`"send_at":"2026-12-01T09:00:00","expires_at":"tomorrow","latest":"2026-12-01"`), nil, 422,
			[]string{"body.expires_at", "must be a time like", "tomorrow", "body.latest", "must be a time", "2026-12-01", "body.send_at", "needs a time zone", "2026-12-01T09:00:00"}},
		{"sloppy times", with(`"send_at":"2026-12-01T9:00:00Z","expires_at":"2026-12-01 09:00:00Z","latest":"2026-12-01T09:00:00,5Z"`), nil, 422,
			[]string{"body.expires_at", "must be", "2026-12-01 09:00:00Z", "body.latest", "must be", "2026-12-01T09:00:00,5Z", "body.send_at", "must be", "2026-12-01T9:00:00Z"}},
		{"impossible times", with(`"send_at":"2026-02-29T09:00:00Z","expires_at":"2026-12-01T24:00:00Z","latest":"2026-12-01T09:00:00+24:00"`), nil, 422,
			[]string{"body.expires_at", "must be", "2026-12-01T24:00:00Z", "body.latest", "must be", "2026-12-01T09:00:00+24:00", "body.send_at", "must be", "2026-02-29T09:00:00Z"}},
		{"no year", with(`"send_at":"0000-12-01T09:00:00Z","expires_at":"9999-12-31T23:59:59-01:00"`), nil, 422,
			[]string{"body.expires_at", "years 1 to 9999", "9999-12-31T23:59:59-01:00", "body.send_at", "years 1 to 9999", "0000-12-01T09:00:00Z"}},
		{"the zero time", with(`"send_at":"0001-01-01T00:00:00Z"`), nil, 422, []string{"body.send_at", "in the past", "0001-01-01T00:00:00Z"}},
		{"past", with(`"send_at":"2020-01-01T01:00:00+01:00"`), nil, 422, []string{"body.send_at", "in the past", "2020-01-01T01:00:00+01:00"}},
		{"beyond the horizon", with(`"send_at":"9998-01-01T00:00:00z"`), nil, 422, []string{"body.send_at", "ahead", "9998-01-01T00:00:00z"}},
		{"after its expiry", with(`"send_at":"` + in(2*time.Hour) + `","expires_at":"` + in(time.Hour) + `"`), nil, 422, []string{"body.expires_at", "after send_at", in(time.Hour)}},
		{"deferred to before", with(`"send_at":"` + in(2*time.Hour) + `","on_conflict":"defer","latest":"` + in(time.Hour) + `"`), nil, 422, []string{"body.latest", "before send_at", in(time.Hour)}},
		{"too deep", with(`"metadata":` + deep), nil, 422, []string{"body.metadata", "deeper than 100", ""}},
		{"all at once", [3]string{"POST", "/v1/pushes?validate_only=yes&dry=1", `{"message":[],"channel":"fax","send_at":"2020-01-01T00:00:00Z","x":0}`},
			[]string{"Idempotency-Key", strings.Repeat("k", 256)}, 422,
			[]string{"body.channel", "unknown channel", "fax", "body.message", "object", "[]", "body.recipient", "required", "", "body.send_at", "past", "2020-01-01T00:00:00Z",
				"body.x", "unexpected", "0", "header.Idempotency-Key", "1 to 255", strings.Repeat("k", 256), "query.dry", "unexpected", "1", "query.validate_only", "true or false", "yes"}},
		{"malformed, and more", [3]string{"POST", "/v1/pushes?dry=1", `{`}, nil, 400, []string{"body", "JSON", "", "query.dry", "unexpected", "1"}},
		{"key that is no ASCII", with(`"to":""`), []string{"Idempotency-Key", "schlüssel"}, 422, []string{"header.Idempotency-Key", "ASCII", "schl??ssel"}},

		{"batch without pushes", [3]string{"POST", "/v1/pushes/batch", `{"atomic":1,"all":2}`}, nil, 422,
			[]string{"body.all", "unexpected", "2", "body.atomic", "true or false", "1", "body.pushes", "required", ""}},
		{"empty batch", [3]string{"POST", "/v1/pushes/batch", `{"pushes":[]}`}, nil, 422, []string{"body.pushes", "1 to 1000", ""}},
		{"batch of 1001", [3]string{"POST", "/v1/pushes/batch", `{"pushes":[` + strings.Repeat(`{"recipient":"a","message":{}},`, 1000) + `{"recipient":"a","message":{}}]}`}, nil, 422,
			[]string{"body.pushes", "has 1001", ""}},
		{"batch of no array", [3]string{"POST", "/v1/pushes/batch", `{"pushes":{}}`}, nil, 422, []string{"body.pushes", "array", "{}"}},
		{"atomic batch with faults", [3]string{"POST", "/v1/pushes/batch", `{"pushes":[{"recipient":1,"message":{}},{"recipient":"a","message":{},"channel":"fax"}],"atomic":true}`}, nil, 422,
			[]string{"body.pushes[0].recipient", "string", "1", "body.pushes[1].channel", "unknown", "fax"}},
		{"malformed batch", [3]string{"POST", "/v1/pushes/batch", `{"pushes":[{"recipient":"a","message":{}},]}`}, nil, 400, []string{"body", "line 1, column 42", ""}},

		{"id", get("/v1/pushes/42?x=1"), nil, 422, []string{"path.id", "UUID", "42", "query.x", "unexpected", "1"}},
		{"id in braces", get("/v1/pushes/urn:uuid:0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"), nil, 422, []string{"path.id", "UUID", "urn:uuid:0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"}},
		{"cancel", [3]string{"POST", "/v1/pushes/x/cancel", `{"why":1}`}, nil, 422, []string{"body.why", "unexpected", "1", "path.id", "UUID", "x"}},
		{"move", [3]string{"PATCH", id, `{}`}, nil, 422, []string{"body.send_at", "required", ""}},
		{"move more", [3]string{"PATCH", id, `{"send_at":"2020-01-01T00:00:00Z","message":{}}`}, nil, 422,
			[]string{"body.message", "cannot be changed", "{}", "body.send_at", "past", "2020-01-01T00:00:00Z"}},
		{"list", get("/v1/pushes?status=lost&from=monday&until=2026-12-01T00:00:00&page_size=501&recipient=%00&channel=%ff&nope=&category=" + strings.Repeat("c", 65)), nil, 422,
			[]string{"query.category", "at most 64", strings.Repeat("c", 65), "query.channel", "UTF-8", "\ufffd", "query.from", "must be a time", "monday", "query.nope", "unexpected", "",
				"query.page_size", "1 to 500", "501", "query.recipient", "U+0000", "\x00", "query.status", "one of", "lost", "query.until", "zone", "2026-12-01T00:00:00"}},
		{"page token", get("/v1/pushes?page_token=AAAA"), nil, 422, []string{"query.page_token", "not a token", "AAAA"}},
		{"twice", get("/v1/pushes?status=sent&status=failed"), nil, 422, []string{"query.status", "more than once", "failed"}},
		{"check", [3]string{"POST", "/v1/quota/check", `{"channel":"fax","send_at":"2020-01-01T00:00:00Z","metadata":{},"message":1,"template":true}`}, nil, 422,
			[]string{"body.channel", "unknown", "fax", "body.message", "object", "1", "body.metadata", "unexpected", "{}", "body.recipient", "required", "", "body.send_at", "past", "2020-01-01T00:00:00Z"}},
		{"recipient in the path", get("/v1/recipients/" + strings.Repeat("x", 129) + "/quota?at=now&channel=fax"), nil, 422,
			[]string{"path.id", "at most 128", strings.Repeat("x", 129), "query.at", "must be a time", "now", "query.channel", "push, sms", "fax"}},
		{"control character in the path", get("/v1/recipients/a%0Ab/slots"), nil, 422, []string{"path.id", "U+000A", "a\nb"}},
		{"slots backwards", get("/v1/recipients/a/slots?from=" + in(2*time.Hour) + "&until=" + in(2*time.Hour)), nil, 422, []string{"query.until", "after from", in(2 * time.Hour)}},
		{"slots too wide", get("/v1/recipients/a/slots?from=" + in(0) + "&until=" + in(401*24*time.Hour)), nil, 422, []string{"query.until", "400 days", in(401 * 24 * time.Hour)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			headers := append([]string{"Authorization", "Bearer " + b.key}, c.headers...)
			r := ask(t, b.api, c.request[0], c.request[1], c.request[2], headers...).must(t, c.status, "invalid-request")
			checkFaults(t, r, c.want)
		})
	}
	b.noTrace()
}

// checkFaults compares the errors of a problem with triples of location, part of the message, and value.
func checkFaults(t *testing.T, r reply, want []string) {
	t.Helper()
	errs := r.at(t, "errors").([]any)
	slices.SortFunc(errs, func(a, b any) int {
		return strings.Compare(a.(map[string]any)["location"].(string), b.(map[string]any)["location"].(string))
	})
	if len(errs) != len(want)/3 {
		t.Fatalf("%d faults, want %d: %s", len(errs), len(want)/3, r.text)
	}
	for i, e := range errs {
		got := e.(map[string]any)
		value := ""
		if v, ok := got["value"]; ok {
			value = fmt.Sprint(v)
			if v == nil {
				value = "null"
			}
		}
		value = strings.NewReplacer("map[]", "{}").Replace(value)
		if got["location"] != want[3*i] || !strings.Contains(got["message"].(string), want[3*i+1]) || value != want[3*i+2] {
			t.Errorf("fault %v, want %q", got, want[3*i:3*i+3])
		}
	}
}

// TestFieldErrors_Counted: an invalid submit counts once for each of its pushes.
func TestFieldErrors_Counted(t *testing.T) {
	b := setup(t)
	for _, c := range []struct {
		path, body   string
		status, more int
	}{
		{"/v1/pushes", `{`, 400, 1},
		{"/v1/pushes", `{"recipient":""}`, 422, 1},
		{"/v1/pushes?validate_only=perhaps", pushBody("user-1", b.in(time.Hour), ""), 422, 1},
		{"/v1/pushes/batch", `{"pushes":[`, 400, 1},
		{"/v1/pushes/batch", `{"pushes":[]}`, 422, 1},
		{"/v1/pushes/batch", `{"pushes":[` + pushBody("user-1", b.in(time.Hour), "") + `,{}],"atomic":true}`, 422, 2},
		{"/v1/pushes", pushBody("user-1", "2000-01-01T00:00:00Z", ""), 422, 1}, // which the schedule counts
		{"/v1/pushes", `{"message":"` + strings.Repeat("x", rest.MaxBody) + `"}`, 413, 0},
		{"/v1/quota/check", `{"recipient":""}`, 422, 0},
	} {
		before := b.metrics.of("invalid")
		b.send("POST", c.path, c.body).must(t, c.status)
		if got := b.metrics.of("invalid") - before; got != c.more {
			t.Errorf("%s %.60s: %d counted, want %d", c.path, c.body, got, c.more)
		}
	}
}
