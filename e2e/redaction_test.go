package e2e

import (
	"encoding/base64"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// marked are settings in which every secret contains MARK.
const marked = `
policy:
  rules: [{name: per-minute, limit: 1, window: 1m}]
channels:
  push: {type: webhook, url: "http://PROVIDER/send?token=MARKquery", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 1s,
         max_attempts: 2, backoff: {first: 200ms, max: 300ms}}
  nowhere: {type: webhook, url: "http://127.0.0.1:1/MARKpath", secret: "MARK0123456789abcdef", allow_private_addresses: true, max_attempts: 2, backoff: {first: 200ms, max: 300ms}}
  private: {type: webhook, url: "http://127.0.0.1:2/MARKpath", max_attempts: 2, backoff: {first: 200ms, max: 300ms}}
  unknown: {type: webhook, url: "http://MARKhost.invalid/", max_attempts: 2, backoff: {first: 200ms, max: 300ms}}
  log: {type: log}
delivery: {lease: 3s, arm_lease: 2s, redis_patience: 1s, audit_interval: 1s}
`

// TestRedaction: API and worker say all that they can say, through
// successes and failures of everything, and no secret, message, recipient or
// address is in any log line or metric.
func TestRedaction(t *testing.T) {
	allOnly(t)
	t.Parallel()
	pg, rd := newOwnPostgres(t), newOwnRedis(t)
	rd.do("CONFIG", "SET", "requirepass", "MARKredis")
	b := setupWith(t, options{
		database: withPassword(t, pg.service, "MARKpostgres"), redis: withPassword(t, rd.URL, "MARKredis"), config: marked,
		env: []string{"PUSH_SECRET=whsec_MARKsignedAAAAAAAAAAAAAA", "SENDQUOTA_LOG_LEVEL=debug"},
	})
	api, worker := b.StartAPI(), b.startWatchedWorker()
	refused := map[int]int{}
	submit := func(who, channel, do string, headers ...string) {
		t.Helper()
		a, err := b.ask("POST", "/v1/pushes", object{
			"recipient": "MARKrecipient-" + who, "to": "MARKaddress", "channel": channel, "metadata": object{"m": "MARKmetadata"},
			"message": object{"title": "MARKmessage", "do": do},
		}, append(headers, "X-Forwarded-For", "MARKforwarded")...)
		testenv.Check(t, err)
		refused[a.status]++
	}
	story := func(phase string) {
		for _, do := range []string{"", "404", "429", "500", "503", "drop", "garbage", "redirect", "large-500"} {
			submit(phase+do, "push", do, "Idempotency-Key", "MARKkey"+phase+do)
		}
		for _, channel := range []string{"nowhere", "private", "unknown", "log"} {
			submit(phase+channel, channel, "")
		}
		submit(phase, "push", "") // refused by the quota
		submit(phase, "MARKchannel", "")
		submit("bad", "push", "", "Authorization", "Bearer sq_MARKguess")
		submit("bad", "push", "", "Authorization", "Basic MARKbasic")
		submit("bad", "push", "", "Content-Type", "text/MARK")
		for _, path := range []string{"/v1/MARKnothing", "/v1/pushes?recipient=MARKrecipient-&page_token=MARKtoken", "/v1/pushes/MARKid", "/v1/recipients/MARKrecipient/slots", "/v1/recipients/MARKrecipient/quota?MARK=1"} {
			a, err := b.ask("GET", path, nil, "X-Request-Id", "MARK request", "User-Agent", "MARKagent")
			testenv.Check(t, err)
			refused[a.status]++
		}
		_, _ = b.call("POST", "/v1/pushes/batch", object{"pushes": []any{object{"recipient": "MARKbatch", "message": "MARKno"}, "MARKmember"}})
		_, _ = b.call("POST", "/v1/pushes", `{"MARKbody": `)
	}
	story("first")
	b.until("attempts have failed in all ways", func() bool {
		_, list := b.call("GET", "/v1/pushes?status=failed&page_size=100", nil)
		return len(list["pushes"].([]any)) >= 7
	})

	rd.must(rd.Kill())
	story("without-redis")
	rd.restart()
	rd.do("CONFIG", "SET", "requirepass", "MARKother") // and now the password is wrong
	story("wrong-password")

	pg.do(`ALTER ROLE service NOLOGIN; ` + terminate)
	story("kept-out")
	pg.must(pg.Kill())
	story("without-postgres")
	b.until("the worker misses Postgres", func() bool { return strings.Contains(worker.Log(), `"level":"ERROR"`) })

	told := api.Log() + worker.Log()
	for _, url := range []string{b.api, worker.url} {
		res, err := httpClient.Get(url + "/metrics")
		testenv.Check(t, err)
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		told += string(text)
	}
	b.stop(api)
	b.stop(worker.Process)
	told += api.Log() + worker.Log()

	for _, secret := range []string{"mark", b.Key, b.Key[3:20], base64.StdEncoding.EncodeToString([]byte(":MARKredis"))} {
		for line := range strings.Lines(told) {
			if strings.Contains(strings.ToLower(line), strings.ToLower(secret)) {
				t.Errorf("%q appears: %s", secret, line)
			}
		}
	}
	// It was worth looking: all of that happened.
	for _, status := range []int{201, 401, 404, 409, 415, 422, 503} {
		if refused[status] == 0 {
			t.Errorf("no answer had status %d: %v", status, refused)
		}
	}
	for _, event := range []string{`"level":"DEBUG"`, `"level":"WARN"`, `"level":"ERROR"`, "redis: ", "connection refused", `"status":503`, "sendquota_up"} {
		if !strings.Contains(told, event) {
			t.Errorf("no line about %s", event)
		}
	}
	if all := b.provider.Arrivals(); len(all) < 9 || !strings.Contains(string(all[0].Message), "MARKmessage") || time.Since(all[0].At) > time.Hour {
		t.Errorf("the provider got %d pushes", len(all))
	}
}

// withPassword is a server's URL with a password in it.
func withPassword(t *testing.T, raw, password string) string {
	t.Helper()
	u, err := url.Parse(raw)
	testenv.Check(t, err)
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String()
}
