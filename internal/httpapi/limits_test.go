package httpapi

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/httpapi/limits"
	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/testenv"
)

// takeBody asks for a cost of limits, each written as algorithm, limit, per and the rest.
func takeBody(key string, more string, limits ...string) string {
	var all []string
	for _, l := range limits {
		words := append(strings.Fields(l), "")
		one := fmt.Sprintf(`{"algorithm":%q,"limit":%s,"per":%q`, words[0], words[1], words[2])
		if words[3] != "" {
			one += "," + words[3]
		}
		all = append(all, one+"}")
	}
	return fmt.Sprintf(`{"key":%q,"limits":[%s]%s}`, key, strings.Join(all, ","), more)
}

// TestTake follows the issue's own example until it is refused.
func TestTake(t *testing.T) {
	b := setup(t)
	const limits = `"limits": [{"algorithm": "sliding_log", "limit": 5, "per": "60s"}, {"algorithm": "token_bucket", "limit": 100, "per": "1h", "burst": 20}]`
	body := `{"key": "user-7:reply", "cost": 1, "dry_run": false, ` + limits + `}`
	b.send("POST", "/v1/limits/take", strings.Replace(body, "false", "true", 1)).must(t, 200).remains(t, true, 5, 20)
	b.noTrace()
	first := b.send("POST", "/v1/limits/take", body).must(t, 200)
	const want = `{"allowed":true,"limits":[` +
		`{"algorithm":"sliding_log","limit":5,"per_seconds":60,"allowed":true,"remaining":4,"retry_after_ms":0,"reset_after_ms":60000},` +
		`{"algorithm":"token_bucket","limit":100,"per_seconds":3600,"allowed":true,"remaining":19,"retry_after_ms":0,"reset_after_ms":36000}]}`
	if strings.TrimSpace(first.text) != want {
		t.Errorf("got  %s\nwant %s", first.text, want)
	}
	b.send("POST", "/v1/limits/take", strings.Replace(body, `"cost": 1`, `"cost": 4`, 1)).must(t, 200).remains(t, true, 0, 15)
	refused := b.send("POST", "/v1/limits/take", body).must(t, 200).remains(t, false, 0, 15)
	if refused.at(t, "limits", 0, "allowed") != false || refused.at(t, "limits", 1, "allowed") != true {
		t.Errorf("%s", refused.text)
	}
	if retry := refused.at(t, "limits", 0, "retry_after_ms").(float64); retry < 50_000 || retry > 60_000 {
		t.Errorf("retry after %v ms", retry)
	}
	if r := b.send("POST", "/v1/limits/take", strings.Replace(body, `"cost": 1`, `"cost": 6`, 1)).must(t, 200); r.at(t, "limits", 0, "retry_after_ms") != nil || r.at(t, "limits", 1, "retry_after_ms") != 0.0 {
		t.Errorf("%s", r.text)
	}

	// Another key, another tenant and another definition have limits of their own.
	b.send("POST", "/v1/limits/take", strings.Replace(body, "user-7", "user-8", 1)).must(t, 200).remains(t, true, 4, 19)
	b.send("POST", "/v1/limits/take", body, "Authorization", "Bearer "+b.other).must(t, 200).remains(t, true, 4, 19)
	b.send("POST", "/v1/limits/take", strings.Replace(body, `"limit": 5`, `"limit": 6`, 1)).must(t, 200).remains(t, true, 5, 14)
}

// remains compares the answer of a take.
func (r reply) remains(t *testing.T, allowed bool, remaining ...float64) reply {
	t.Helper()
	if r.at(t, "allowed") != allowed {
		t.Errorf("allowed is not %v: %s", allowed, r.text)
	}
	for i, n := range remaining {
		if r.at(t, "limits", i, "remaining") != n {
			t.Errorf("limit %d does not have %v left: %s", i, n, r.text)
		}
	}
	return r
}

// TestTake_Concurrent: as many pass as the limit has.
func TestTake_Concurrent(t *testing.T) {
	b := setup(t)
	var passed atomic.Int64
	var all sync.WaitGroup
	body := takeBody("a", "", "sliding_log 10 1h", "leaky_bucket 1 1h "+`"burst":12`)
	for range 40 {
		all.Go(func() {
			if r := b.send("POST", "/v1/limits/take", body); r.body["allowed"] == true {
				passed.Add(1)
			}
		})
	}
	all.Wait()
	if passed.Load() != 10 {
		t.Errorf("%d passed", passed.Load())
	}
	b.send("POST", "/v1/limits/take", body).must(t, 200).remains(t, false, 0, 2)
}

// TestTake_WithoutRedis: without Redis, the answer is a 503.
func TestTake_WithoutRedis(t *testing.T) {
	server := testenv.OwnRedis(t)
	rdb := testenv.RedisClient(t, server.URL, func(o *redisclient.Options) { o.MaxRetries, o.ContextTimeoutEnabled = -1, true })
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	var failures atomic.Int64
	hanging := ratelimit.New(rdb, ratelimit.Config{Config: redisscript.Config{OnError: func(error) { failures.Add(1) }}})
	for name, cfg := range map[string]Config{"hangs": {Limiter: hanging}, "none": {}} {
		h := New(nil, everything{}, cfg)
		began := time.Now()
		for n := range 20 {
			path := "/v1/limits/" + []string{"take", "refund", "reset"}[n%3]
			r := ask(t, h, "POST", path, takeBody("a", "", "token_bucket 1 1s"), "Authorization", "Bearer k").must(t, 503, "unavailable")
			if r.header.Get("Retry-After") != "1" || strings.Contains(r.text, "127.0.0.1") || !strings.Contains(r.text, "Redis") {
				t.Errorf("%s: %v %s", name, r.header, r.text)
			}
		}
		if most := 2 + int64(time.Since(began)/time.Second); failures.Load() > most { // it is asked once a second
			t.Errorf("%s: Redis was asked %d times for 20 answers", name, failures.Load())
		}
	}
}

// TestTake_Keys: a user, an address and an app in one take, all or none.
func TestTake_Keys(t *testing.T) {
	b := setup(t)
	take := func(user, address string) reply {
		return b.send("POST", "/v1/limits/take", fmt.Sprintf(`{"key":"app","limits":[{"key":%q,"algorithm":"sliding_log","limit":2,"per":"1h"},
			{"key":%q,"algorithm":"fixed_window","limit":3,"per":"1h"},{"algorithm":"token_bucket","limit":10,"per":"1h"}]}`, user, address)).must(t, 200)
	}
	r := take("anna", "192.0.2.1").remains(t, true, 1, 2, 9)
	if r.at(t, "limits", 0, "key") != "anna" || r.at(t, "limits", 1, "key") != "192.0.2.1" || strings.Count(r.text, `"key"`) != 2 {
		t.Errorf("%s", r.text)
	}
	take("anna", "192.0.2.2").remains(t, true, 0, 2, 8)
	r = take("anna", "192.0.2.1").remains(t, false, 0, 2, 8)
	if r.at(t, "limits", 0, "allowed") != false || r.at(t, "limits", 1, "allowed") != true {
		t.Errorf("%s", r.text)
	}
	take("bert", "192.0.2.1").remains(t, true, 1, 1, 7)

	// It is the same limit, wherever its key stands, and whatever it is taken with.
	b.send("POST", "/v1/limits/take", takeBody("anna", "", "sliding_log 2 1h")).must(t, 200).remains(t, false, 0)
	b.send("POST", "/v1/limits/take", takeBody("app", "", "token_bucket 10 1h")).must(t, 200).remains(t, true, 6)
	b.send("POST", "/v1/limits/take", `{"limits":[{"key":"{x}:1","algorithm":"sliding_log","limit":2,"per":"1h"},{"key":"{x}:2","algorithm":"sliding_log","limit":2,"per":"1h"}]}`).
		must(t, 200).remains(t, true, 1, 1)
	b.send("POST", "/v1/limits/take", takeBody("{x}:2", "", "sliding_log 2 1h")).must(t, 200).remains(t, true, 0)
}

// TestTake_Cluster: keys with one tag are decided together; others are not even asked about, and the advice is to
// give them one.
func TestTake_Cluster(t *testing.T) {
	cluster := redisclient.Open(redisclient.Options{Addrs: strings.Split(testenv.RedisCluster(t), ",")})
	t.Cleanup(func() { _ = cluster.Close() })
	h := New(nil, everything{}, Config{Limiter: ratelimit.New(cluster, ratelimit.Config{Config: redisscript.Config{Timeout: time.Minute}})})
	send := func(path, key, first, second string) reply {
		own := func(key string) string {
			if key == "" {
				return ""
			}
			return fmt.Sprintf(`"key":%q,`, key)
		}
		return ask(t, h, "POST", "/v1/limits/"+path, fmt.Sprintf(`{%s"limits":[{%s"algorithm":"sliding_log","limit":2,"per":"1h"},{%s"algorithm":"token_bucket","limit":3,"per":"1h"}]}`,
			own(key), own(first), own(second)), "Authorization", "Bearer k")
	}
	for n := range 12 { // on all nodes
		tag := fmt.Sprintf("{user-%d}", n)
		send("take", "", tag+":reply", tag+":app").must(t, 200).remains(t, true, 1, 2)
		send("take", tag+":app", tag+":reply", "").must(t, 200).remains(t, true, 0, 1)
		send("take", "", tag+":reply", tag+":app").must(t, 200).remains(t, false, 0, 1)
		send("refund", "", tag+":reply", tag+":app").must(t, 200).remains(t, true, 1, 2)
		send("reset", "", tag+":reply", tag+":app").must(t, 200).remains(t, true, 2, 3)
		send("take", fmt.Sprint("untagged-", n), "", "").must(t, 200).remains(t, true, 1, 2)
		send("take", "", "a{"+fmt.Sprint(n)+"}b", fmt.Sprint(n)).must(t, 200).remains(t, true, 1, 2) // as Redis has it
	}
	for _, path := range []string{"take", "refund", "reset"} {
		r := send(path, "", "user-7", "app-1").must(t, 422, "invalid-request")
		checkFaults(t, r, []string{"body.limits[1].key", "{user-7}:reply and {user-7}:app", "app-1"})
		checkFaults(t, send(path, "app-1", "{a}:1", "").must(t, 422, "invalid-request"), []string{"body.key", "same {tag} as the key of limits[0]", "app-1"})
	}
}

// TestLimits_RefundAndReset follow a take.
func TestLimits_RefundAndReset(t *testing.T) {
	b := setup(t)
	send := func(path, more string) reply {
		return b.send("POST", "/v1/limits/"+path, takeBody("a", more, "sliding_log 5 1h", `leaky_bucket 5 1h "burst":5`, `fixed_window 8 1h "aligned":true`, `token_bucket 4 1h "burst":9,"refill":"interval"`)).must(t, 200)
	}
	send("take", `,"cost":3`).remains(t, true, 2, 2, 5, 6)
	send("take", `,"cost":3`).remains(t, false, 2, 2, 5, 6)
	if r := send("refund", `,"cost":3,"dry_run":true`).remains(t, false, 2, 2, 5, 6); r.at(t, "limits", 0, "retry_after_ms") == 0.0 {
		t.Errorf("%s", r.text)
	}
	if r := send("refund", "").remains(t, true, 3, 3, 6, 7); r.at(t, "limits", 0, "retry_after_ms") != 0.0 {
		t.Errorf("%s", r.text)
	}
	send("take", `,"cost":3`).remains(t, true, 0, 0, 3, 4)
	send("refund", `,"cost":1000000`).remains(t, false, 5, 5, 8, 9)
	b.noTrace()
	send("take", `,"cost":5`).remains(t, true, 0, 0, 3, 4)
	b.send("POST", "/v1/limits/reset", takeBody("a", "", "sliding_log 5 1h")).must(t, 200).remains(t, true, 5)
	send("take", "").remains(t, false, 5, 0, 3, 4)
	send("reset", `,"dry_run":true`).remains(t, false, 5, 0, 3, 4)
	send("reset", "").remains(t, true, 5, 5, 8, 9)
	b.noTrace()

	// The limits of another tenant stay.
	send("take", "")
	b.send("POST", "/v1/limits/reset", takeBody("a", "", "sliding_log 5 1h"), "Authorization", "Bearer "+b.other).must(t, 200)
	send("take", `,"dry_run":true`).remains(t, true, 4, 4, 7, 8)
	_, reader := b.newTenant("reader", "quota:read")
	for _, path := range []string{"refund", "reset"} {
		b.send("POST", "/v1/limits/"+path, takeBody("a", "", "sliding_log 5 1h"), "Authorization", "Bearer "+reader).must(t, 403, "forbidden")
	}
}

// TestTake_TenantShare: takes beyond a tenant's part are refused with a time to try again.
func TestTake_TenantShare(t *testing.T) {
	b := setup(t)
	b.api = New(b.service(b.store, testPolicy()), b.store, Config{Limiter: busy{}})
	r := b.send("POST", "/v1/limits/take", takeBody("a", "", "sliding_log 5 1h")).must(t, 429, "rate-limited")
	if r.header.Get("Retry-After") != "1" || !strings.Contains(r.text, "fewer") {
		t.Errorf("%v %s", r.header, r.text)
	}
}

// busy is a limiter whose owners have no part left.
type busy struct{ limits.Limiter }

func (busy) Take(context.Context, string, int, ...ratelimit.Rule) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, ratelimit.ErrBusy
}
