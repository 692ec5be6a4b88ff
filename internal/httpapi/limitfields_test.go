package httpapi

import (
	"fmt"
	"strings"
	"testing"
)

func TestTake_FieldErrors(t *testing.T) {
	b := setup(t)
	ok, many := "fixed_window 1 1s", []string(nil)
	for n := range 17 {
		many = append(many, fmt.Sprintf("fixed_window %d 1s", 1+n))
	}
	for name, c := range map[string]struct {
		body string
		want []string // location, part of the message, value
	}{
		"nothing": {`{}`, []string{"body.key", "required", "", "body.limits", "required", ""}},
		"all wrong": {`{"key":7,"cost":0,"dry_run":"yes","limits":{},"more":1}`, []string{
			"body.cost", "1 to 1000000", "0", "body.dry_run", "true or false", "yes", "body.key", "string", "7", "body.limits", "array", "{}", "body.more", "unexpected", "1"}},
		"no limits":       {`{"key":"a","limits":[]}`, []string{"body.limits", "1 to 16 limits, has 0", ""}},
		"17 limits":       {takeBody("a", "", many...), []string{"body.limits", "has 17", ""}},
		"key too long":    {takeBody(strings.Repeat("k", 257), "", ok), []string{"body.key", "at most 256", strings.Repeat("k", 256) + "…"}},
		"key empty":       {takeBody("", "", ok), []string{"body.key", "empty", ""}},
		"key not printed": {takeBody("a\nb", "", ok), []string{"body.key", "U+000A", "a\nb"}},
		"cost too high":   {takeBody("a", `,"cost":1000001`, ok), []string{"body.cost", "1 to 1000000", "1.000001e+06"}},
		"limits": {`{"key":"a","limits":[1,{},{"algorithm":"gcra","limit":1.5,"per":60,"burst":"2","precision":[],"x":{}}]}`, []string{
			"body.limits[0]", "object", "1",
			"body.limits[1].algorithm", "required", "", "body.limits[1].limit", "required", "", "body.limits[1].per", "required", "",
			"body.limits[2].algorithm", "one of: fixed_window", "gcra", "body.limits[2].burst", "whole number", "2", "body.limits[2].limit", "whole number", "1.5",
			"body.limits[2].per", "string", "60", "body.limits[2].precision", "string", "[]", "body.limits[2].x", "unexpected", "{}"}},
		"bounds": {takeBody("a", "", "fixed_window 0 0s", "token_bucket 1000000001 8761h "+`"burst":0`, "sliding_log 10001 1us", "sliding_window 1 1m "+`"precision":"0s"`), []string{
			"body.limits[0].limit", "1 to 1000000000", "0", "body.limits[0].per", "1 millisecond to 1 year", "0s",
			"body.limits[1].burst", "1 to", "0", "body.limits[1].limit", "1 to", "1.000000001e+09", "body.limits[1].per", "1 millisecond to 1 year", "8761h",
			"body.limits[2].limit", "1 to 10000", "10001", "body.limits[2].per", "written like", "1us",
			"body.limits[3].precision", "1 millisecond to 1 year", "0s"}},
		"of others": {takeBody("a", "", `fixed_window 1 1s "burst":2,"precision":"1ms"`, `leaky_bucket 1 1s "precision":"1ms"`, `sliding_window 1 1s "burst":2,"precision":"2s"`), []string{
			"body.limits[0].burst", "token_bucket and leaky_bucket only", "2", "body.limits[0].precision", "sliding_window only", "1ms",
			"body.limits[1].precision", "sliding_window only", "1ms", "body.limits[2].burst", "only", "2", "body.limits[2].precision", "at most per", "2s"}},
		"fractions": {takeBody("a", "", "fixed_window 1 1.0005s", `sliding_window 1 1h "precision":"1s"`, `token_bucket 1 8760h "burst":11`), []string{
			"body.limits[0].per", "whole milliseconds", "1.0005s", "body.limits[1].precision", "thousandth", "1s", "body.limits[2].burst", "10 years", "11"}},
		"forms of others": {takeBody("a", "", `sliding_log 1 1s "aligned":true,"refill":"greedy"`, `fixed_window 1 1s "aligned":1,"refill":"interval"`, `token_bucket 1 1s "aligned":true,"refill":"often"`, `leaky_bucket 1 1s "refill":"interval"`), []string{
			"body.limits[0].aligned", "fixed_window only", "true", "body.limits[0].refill", "token_bucket only", "greedy",
			"body.limits[1].aligned", "true or false", "1", "body.limits[1].refill", "token_bucket only", "interval",
			"body.limits[2].aligned", "fixed_window only", "true", "body.limits[2].refill", "one of: greedy, interval", "often", "body.limits[3].refill", "token_bucket only", "interval"}},
		"one without a key":     {strings.Replace(takeBody("", "", ok, `fixed_window 1 1s "key":"b"`), `"key":"",`, "", 1), []string{"body.key", "unless each limit", ""}},
		"keys of limits":        {takeBody("a", "", `fixed_window 1 1s "key":""`, `fixed_window 1 1s "key":7`, `fixed_window 1 1s "key":"`+strings.Repeat("k", 257)+`"`), []string{"body.limits[0].key", "empty", "", "body.limits[1].key", "string", "7", "body.limits[2].key", "at most 256", strings.Repeat("k", 256) + "…"}},
		"the same by its key":   {takeBody("a", "", ok, `fixed_window 1 1s "key":"a"`), []string{"body.limits[1]", "same limit as limits[0]", ""}},
		"the same by its words": {takeBody("a", "", `token_bucket 1 1s`, `token_bucket 1 1s "refill":"greedy"`, `token_bucket 1 1s "refill":"interval"`, ok, `fixed_window 1 1s "aligned":false`, `fixed_window 1 1s "aligned":true`), []string{"body.limits[1]", "same limit as limits[0]", "", "body.limits[4]", "same limit as limits[3]", ""}},
		"the same":              {takeBody("a", "", "token_bucket 5 1m", ok, `token_bucket 5 60s "burst":5`), []string{"body.limits[2]", "same limit as limits[0]", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"take", "refund", "reset"} {
				checkFaults(t, b.send("POST", "/v1/limits/"+path, c.body).must(t, 422, "invalid-request"), c.want)
			}
		})
	}
	checkFaults(t, b.send("POST", "/v1/limits/take?dry_run=true", takeBody("a", "", ok)).must(t, 422, "invalid-request"), []string{"query.dry_run", "unexpected", "true"})
	b.send("POST", "/v1/limits/take", `{"key":"a","limits":[{]}`).must(t, 400, "invalid-request")
	b.send("POST", "/v1/limits/take", `{"key":"a","limits":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+`}`).must(t, 400, "invalid-request")
	b.noTrace()
}

// TestTake_Defaults: a token bucket starts full, a leaky one spaces evenly, and what is written differently but means
// the same is the same limit.
func TestTake_Defaults(t *testing.T) {
	b := setup(t)
	take := func(limits ...string) reply {
		return b.send("POST", "/v1/limits/take", takeBody("a", "", limits...)).must(t, 200)
	}
	r := take("fixed_window 3 24h", "sliding_log 3 90m", "sliding_window 3 1m", "token_bucket 3 1m", "leaky_bucket 3 1m", "sliding_log 10000 8760h", "fixed_window 1000000000 1ms")
	r.remains(t, true, 2, 2, 2, 2, 0, 9999)
	if r.at(t, "limits", 6, "per_seconds") != 0.001 || r.at(t, "limits", 4, "reset_after_ms") != 20_000.0 {
		t.Errorf("%s", r.text)
	}
	take(`token_bucket 3 60s "burst":3`).remains(t, true, 1)
	take(`leaky_bucket 3 0h1m0s "burst":1`).remains(t, false, 0)
	take(`sliding_window 3 60s "precision":"1000ms"`).remains(t, true, 1)
}
