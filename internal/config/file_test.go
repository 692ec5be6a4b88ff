package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/strictyaml"
)

// read reads text as if it were sendquota.yaml.
func read(text string, environ ...string) (Config, Errors) {
	var c Config
	errs := strictyaml.NewEnvironment(environ).ReadYAML("sendquota.yaml", []byte(text), c.settings)
	return c, errs
}

// whole is the example of the contract, with every setting changed.
const whole = `# all settings
policy:
  rules:
    - {name: burst, limit: 0, window: 1ms}
    - name: slow
      limit: 100000
      window: 8760h
channels:
  push: {type: webhook, url: "https://push.example.com/${PATH_KEY}/send", secret: "${PUSH_SECRET}", previous_secret: the secret of last year, timeout: 1.5s, allow_private_addresses: true, on_unknown: fail,
         max_attempts: 3, backoff: {first: 1s, max: 2m}, throughput: {rate: 100, per: 2s, burst: 7}, levels: {urgent: 100, bulk: 1}}
  a-log: {type: log, throughput: {rate: 5}, offered_to: [acme, "0"]}
  "0":   {type: webhook, url: http://localhost:8, secret: whsec_MTIzNDU2Nzg5MDEyMzQ1Ng==}
api_limits:
  per_key: [{algorithm: sliding_window, limit: 6000, per: 1m, precision: 1s}, {algorithm: fixed_window, limit: 5, per: 1h, aligned: true}]
  per_ip:
    - {algorithm: token_bucket, limit: 200, per: 1s, burst: 400}
    - {algorithm: leaky_bucket, limit: 200, per: 1s}
    - {algorithm: token_bucket, limit: 5, per: 1s, refill: interval}
tenant_channels: {max: 3, types: [log, sms], allow_private_addresses: true}
api_keys: {max_per_tenant: 5}
tenant_caps: {pending_pushes: 1000000000, recipients_per_day: 1, audience_bytes: 2}
http: {max_connections: 1, drain: 0s}
console:
  enabled: true
  addr: ":9"
  public_url: https://console.example.com/
  session_lifetime: 1h
  session_idle: 1m
  max_users_per_tenant: 3
  external_passwords: true
  oidc: {issuer: "https://id.example.com/realm", client_id: sq, client_secret: "${PUSH_SECRET}", groups_claim: roles, roles: {Marketing Team: editor, "0": admin}, tenant: acme, trust_email: true}
database: {max_connections: 1000, read_connections: 1, read_timeout: 100ms}
redis: {max_connections: 8}
delivery:
  concurrency: 10_000
  lease: 3s
  default_ttl: 1h
  max_horizon: 48h
  queues: 64
  arm_lease: 2s
  redis_patience: 1m
  audit_interval: 0s
  horizon: 1s
webhooks: {max_per_tenant: 0, timeout: 100ms, disable_after: 1h, retention: 48h, allow_private_addresses: true}
schedules: {max_per_tenant: 7}
campaigns: {max_per_tenant: 8, max_audience: 9, max_audience_bytes: 10}
retention: {pushes: 0, sends: 8760h, audit_log: 48h}
`

func TestFile(t *testing.T) {
	t.Parallel()
	got, errs := read(whole, "PATH_KEY=k$$${X}", "PUSH_SECRET=not/base64 but long enough")
	if errs != nil {
		t.Fatal(errs)
	}
	slow := 5 * time.Second
	want := Config{
		Policy: rules(policy.Rule{Name: "burst", Limit: new(0), Window: "1ms"}, policy.Rule{Name: "slow", Limit: new(100_000), Window: "8760h"}),
		Channels: []Channel{
			{Name: "push", Type: Webhook, Timeout: 1500 * time.Millisecond, AllowPrivateAddresses: true, OnUnknown: Fail, MaxAttempts: 3, Backoff: Backoff{time.Second, 2 * time.Minute}, Throughput: Throughput{100, 2 * time.Second, 7, Messages}, Levels: Levels{100, 20, 1},
				Webhook: WebhookSettings{"https://push.example.com/k$$${X}/send", "not/base64 but long enough", "the secret of last year"}},
			{Name: "a-log", Type: Log, Timeout: 1500 * time.Millisecond, OnUnknown: Retry, MaxAttempts: 8, Backoff: Backoff{slow, 15 * time.Minute}, Throughput: Throughput{5, time.Second, 1, Messages}, Levels: Levels{70, 20, 10}, OfferedTo: []string{"acme", "0"}},
			{Name: "0", Type: Webhook, Timeout: 1500 * time.Millisecond, OnUnknown: Retry, MaxAttempts: 8, Backoff: Backoff{slow, 15 * time.Minute}, Levels: Levels{70, 20, 10},
				Webhook: WebhookSettings{URL: "http://localhost:8", Secret: "whsec_MTIzNDU2Nzg5MDEyMzQ1Ng=="}},
		},
		APILimits: APILimits{
			PerKey: []ratelimit.Limit{{Algorithm: ratelimit.SlidingWindow, Limit: 6000, Per: time.Minute, Precision: time.Second}, {Algorithm: ratelimit.FixedWindow, Limit: 5, Per: time.Hour, Aligned: true}},
			PerIP: []ratelimit.Limit{
				{Algorithm: ratelimit.TokenBucket, Limit: 200, Per: time.Second, Burst: 400, Refill: ratelimit.Greedy}, {Algorithm: ratelimit.LeakyBucket, Limit: 200, Per: time.Second, Burst: 1},
				{Algorithm: ratelimit.TokenBucket, Limit: 5, Per: time.Second, Burst: 5, Refill: ratelimit.Interval},
			},
		},
		APIKeys:    APIKeys{5},
		TenantCaps: TenantCaps{1_000_000_000, 1, 2},
		HTTP:       HTTP{1, 0},
		Console: Console{
			Enabled: true, Addr: ":9", PublicURL: "https://console.example.com", SessionLifetime: time.Hour, SessionIdle: time.Minute, MaxUsersPerTenant: 3, ExternalPasswords: true,
			OIDC: OIDC{
				Issuer: "https://id.example.com/realm", ClientID: "sq", ClientSecret: "not/base64 but long enough", GroupsClaim: "roles",
				Roles: map[string]string{"Marketing Team": "editor", "0": "admin"}, Tenant: "acme", TrustEmail: true,
			},
		},
		Database: Database{1000, 1, 100 * time.Millisecond},
		Redis:    Redis{8},
		Delivery: Delivery{
			Concurrency: 10_000, Lease: 3 * time.Second, DefaultTTL: time.Hour, MaxHorizon: 48 * time.Hour, Lanes: 4, Queues: 64, Horizon: time.Second,
			ArmLease: 2 * time.Second, RedisPatience: time.Minute,
		},
		Webhooks:  Webhooks{Timeout: 100 * time.Millisecond, DisableAfter: time.Hour, Retention: 48 * time.Hour, AllowPrivateAddresses: true},
		Schedules: Schedules{MaxPerTenant: 7},
		Campaigns: Campaigns{MaxPerTenant: 8, MaxAudience: 9, MaxAudienceBytes: 10},
		Retention: Retention{Sends: 8760 * time.Hour, Log: 48 * time.Hour},

		TenantChannels: TenantChannels{Max: 3, Types: []string{"log", "sms"}, AllowPrivateAddresses: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFile_Empty(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "\ufeff", "\ufeffpolicy: {}\n", "\ufeff---\npolicy: {}\n", "# only a comment\n", "---\n", "---\n...\n", "%YAML 1.2\n---\n{}\n", "policy: {}\ndelivery: {}\n"} {
		got, errs := read(text)
		got.Addr, got.MetricsAddr = "127.0.0.1:8080", ""
		if diff := cmp.Diff(defaults(), got); errs != nil || diff != "" {
			t.Errorf("%q: %v\n(-want +got):\n%s", text, errs, diff)
		}
	}
}

// TestFile_Errors lists the errors of each file, all of them, with their lines.
func TestFile_Errors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"all at once", `policy:
  rules:
    - {name: a, limit: -1, window: 1m}
    - {name: a, limit: "five", window: 60}
    -
      limit: 100001
      window: 8761h
channels:
  Push: {type: log}
delivery:
  concurency: 3
  lease: 1ms
`, []string{
			`3: policy.rules[0].limit: -1: must be a whole number from 0 to 100000`,
			`4: policy.rules[1].limit: "five": must be a whole number from 0 to 100000`,
			`4: policy.rules[1].window: 60: must be a duration from 1 millisecond to 1 year, written like 500ms, 90s, 24h or 30d`,
			`4: policy.rules[1].name: "a": must be unique; rules[0] has it already`,
			`6: policy.rules[2].name: is required (appears in refusals; unique, 1 to 64 of a-z, 0-9, - and _)`,
			`6: policy.rules[2].limit: 100001: must be a whole number from 0 to 100000`,
			`7: policy.rules[2].window: "8761h": must be a duration from 1 millisecond to 1 year, written like 500ms, 90s, 24h or 30d`,
			`9: channels.Push: the name of a channel must be 1 to 64 of a-z, 0-9, - and _`,
			`11: delivery.concurency: is not a setting; allowed: concurrency, lease, default_ttl, max_horizon, lanes, queues, horizon, arm_lease, redis_patience, audit_interval (did you mean concurrency?)`,
			`12: delivery.lease: "1ms": must be a duration of at least 100 milliseconds, written like 500ms, 90s, 24h or 30d`,
		}},
		{"policy of null", "\npolicy:\n", []string{`2: policy: null: must be a mapping with the keys rules, categories, quiet_hours, default_zone; leave the key out for the default`}},
		{"limit left out", "policy: {rules: [{name: a, window: 1s}]}", []string{`1: policy.rules[0].limit: is required (sends allowed within the window, to 100000; 0 blocks all)`}},
		{"calendar and scope", "policy:\n  rules:\n  - name: a\n    limit: 1\n    per: day\n    window: 1h\n    channels: [sms]\n", []string{
			`5: policy.rules[0].per: "day": must not be given together with window: a rule is rolling or of a calendar`,
			`7: policy.rules[0].channels[0]: "sms": there is no such channel; there are: log`,
		}},
		{"name shapes", "policy: {rules: [{name: a b, limit: 1, window: 1s}, {name: 7, limit: 1, window: 1s}]}", []string{
			`1: policy.rules[0].name: "a b": must be 1 to 64 of a-z, 0-9, - and _`,
			`1: policy.rules[1].name: 7: must be a string; put it in quotes`,
		}},
		{"numbers", "delivery:\n  queues: 1.0\n  concurrency: 99999999999999999999\n", []string{
			`2: delivery.queues: 1.0: must be a whole number from 1 to 64`,
			`3: delivery.concurrency: "99999999999999999999": must be a whole number from 1 to 10000`,
		}},
		{"delivery", "delivery:\n  default_ttl: 0s\n  max_horizon: 1x\n  horizon: 999ms\n", []string{
			`2: delivery.default_ttl: "0s": must be a duration above 0, written like 500ms, 90s, 24h or 30d`,
			`3: delivery.max_horizon: "1x": must be a duration above 0, written like 500ms, 90s, 24h or 30d`,
			`4: delivery.horizon: "999ms": must be a duration of at least 1 second, written like 500ms, 90s, 24h or 30d`,
		}},
		{"no channels", "channels: {}", []string{`1: channels: a mapping: must have at least one channel; leave the key out for the default`}},
		{"channels as a list", "channels: [log]", []string{`1: channels: a list: must be a mapping from names to channels`}},
		{"types", "channels:\n  a: {type: SMS}\n  b: {type: fax}\n  c: {}\n  d:\n  e: https://h/hush\n  f: hush\n", []string{
			`2: channels.a.type: "SMS": must be one of webhook, sms, email, fcm, apns, log (did you mean sms?)`,
			`3: channels.b.type: "fax": must be one of webhook, sms, email, fcm, apns, log`,
			`4: channels.c.type: is required (webhook, sms, email, fcm, apns or log)`,
			`5: channels.d: null: must be a mapping with a type and the settings of that type; leave the key out for the default`,
			`6: channels.e: https://…: must be a mapping with a type and the settings of that type`,
			`7: channels.f: must be a mapping with a type and the settings of that type`,
		}},
		{"webhooks", `channels:
  a: {type: webhook}
  b: {type: webhook, url: "push.example.com/send"}
  c: {type: webhook, url: "https://u:hush@h", secret: short}
  d: {type: webhook, url: "https:///x", secret: "whsec_%"}
  e: {type: webhook, url: "ftp://h/hush", secret: 1234567890123456}
  f: {type: webhook, url: "http://h", secret: "ends with a line break\n"}
`, []string{
			`2: channels.a.url: is required (the URL to post to, http or https; may use ${ENV_NAME})`,
			`3: channels.b.url: must be an absolute URL with http:// or https:// and a host`,
			`4: channels.c.url: https://…: must have no user and password; use secret to sign requests`,
			`4: channels.c.secret: must be whsec_ and base64, or any other string of at least 16 bytes, which is used unchanged`,
			`5: channels.d.url: https://…: must be an absolute URL with http:// or https:// and a host`,
			`5: channels.d.secret: must have base64 after whsec_ (without whsec_ it is used unchanged)`,
			`6: channels.e.url: ftp://…: must be an absolute URL with http:// or https:// and a host`,
			`6: channels.e.secret: must be a string; put it in quotes`,
			`7: channels.f.secret: must not begin or end with white space`,
		}},
		{"logs", "channels: {log: {type: log,\n url: 'http://h',\n secret: 0123456789abcdef-}}", []string{
			`2: channels.log.url: is not for type log`,
			`3: channels.log.secret: is not for type log`,
		}},
		{"how a channel tries again", `channels:
  log:
    type: log
    allow_private_addresses: yes
    on_unknown: Retry
    max_attempts: 101
    timeout: 0s
    backoff: {first: 20m}
    throughput: {per: 0s, burst: 0}
  b: {type: log, backoff: {first: 2s, max: 1s}, throughput: 5}
  c: {type: log, backoff: {max: 1s}, levels: {urgent: 0, normal: 101, bulk: 1.5, slow: 3}}
`, []string{
			`4: channels.log.allow_private_addresses: "yes": must be true or false`,
			`5: channels.log.on_unknown: "Retry": must be one of retry, fail (did you mean retry?)`,
			`6: channels.log.max_attempts: 101: must be a whole number from 1 to 100`,
			`7: channels.log.timeout: "0s": must be a duration above 0, written like 500ms, 90s, 24h or 30d`,
			`8: channels.log.backoff.first: "20m": must be at most backoff.max, which is 15 minutes`,
			`9: channels.log.throughput.rate: is required (attempts per time span, at most 1000000 a second)`,
			`9: channels.log.throughput.per: "0s": must be a duration from 1 microsecond to 31 days, written like 500ms, 90s, 24h or 30d`,
			`9: channels.log.throughput.burst: 0: must be a whole number from 1 to 1000000000`,
			`10: channels.b.backoff.first: "2s": must be at most backoff.max, which is 1 second`,
			`10: channels.b.throughput: must be a mapping with the keys rate, per, burst, unit`,
			`11: channels.c.backoff.max: "1s": must be at least backoff.first, which is 5 seconds`,
			`11: channels.c.levels.urgent: 0: must be a whole number from 1 to 100`,
			`11: channels.c.levels.normal: 101: must be a whole number from 1 to 100`,
			`11: channels.c.levels.bulk: 1.5: must be a whole number from 1 to 100`,
			`11: channels.c.levels.slow: is not a setting; allowed: urgent, normal, bulk`,
		}},
		{"speeds that cannot be kept", `channels:
  a: {type: log, throughput: {rate: 1000000}}
  b: {type: log, throughput: {rate: 1000001}}
  c: {type: log, throughput: {rate: 1000000000, per: 1000s}}
  d: {type: log, throughput: {rate: 3, per: 2500ns}}
  e: {type: log, throughput: {rate: 1000000000, per: 999s, burst: 0}}
  f: {type: log, throughput: {rate: 1, per: 999ns}}
`, []string{
			`3: channels.b.throughput.rate: 1000001: must be at most 1000000 a second, which is 1000000 per second`,
			`5: channels.d.throughput.rate: 3: must be at most 1000000 a second, which is 2 per 2 microseconds and 500 nanoseconds`,
			`6: channels.e.throughput.burst: 0: must be a whole number from 1 to 1000000000`,
			`6: channels.e.throughput.rate: 1000000000: must be at most 1000000 a second, which is 999000000 per 16 minutes and 39 seconds`,
			`7: channels.f.throughput.per: "999ns": must be a duration from 1 microsecond to 31 days, written like 500ms, 90s, 24h or 30d`,
		}},
		{"timeout beyond half a lease", "delivery: {lease: 1m1s}\nchannels:\n  a: {type: log, timeout: 30.5s}\n  b: {type: log,\n      timeout: 31s}\n", []string{
			`5: channels.b.timeout: "31s": must be at most half of delivery.lease, which is 1 minute and 1 second`,
		}},
		{"retention below the longest window", "policy: {rules: [{name: a, limit: 1, window: 1h}, {name: b, limit: 1, window: 24h}]}\nretention: {pushes: 23h59m, sends: 1ns}\n", []string{
			`2: retention.pushes: "23h59m": must be at least the longest window of the policy, which is 1 day, or 0`,
			`2: retention.sends: "1ns": must be at least the longest window of the policy, which is 1 day, or 0`,
		}},
		{"retention below a month of the calendar", "policy: {rules: [{name: m, limit: 1, per: month}]}\nretention: {pushes: 744h, sends: 0}\n", []string{
			`2: retention.pushes: "744h": must be at least the longest window of the policy, which is 32 days and 2 hours, or 0`,
		}},
		{"retention in nonsense", "retention: {pushes: -1h, sends: forever, audit_log: 30, events: 1h}\n", []string{
			`1: retention.pushes: "-1h": must be a duration of at least 0 seconds, written like 500ms, 90s, 24h or 30d`,
			`1: retention.sends: "forever": must be a duration of at least 0 seconds, written like 500ms, 90s, 24h or 30d`,
			`1: retention.audit_log: 30: must be a duration of at least 0 seconds, written like 500ms, 90s, 24h or 30d`,
			`1: retention.events: is not a setting; allowed: pushes, sends, audit_log`,
		}},
		{"pools in nonsense", "database: {max_connections: 7, read_connections: 0, read_timeout: 1ms}\nredis: {max_connections: many}\n", []string{
			`1: database.max_connections: 7: must be a whole number from 8 to 1000`,
			`1: database.read_connections: 0: must be a whole number from 1 to 1000`,
			`1: database.read_timeout: "1ms": must be a duration from 100 milliseconds to 1 minute, written like 500ms, 90s, 24h or 30d`,
			`2: redis.max_connections: "many": must be a whole number from 8 to 10000`,
		}},
		{"API limits that cannot be kept, or are there twice", `api_limits:
  per_key: [{algorithm: token_bucket, limit: 5, per: 1s}, {algorithm: token_bucket, limit: 5, per: 1s, burst: 5}]
  per_ip: [{algorithm: token_bucket, limit: 5, per: 1s},
    {algorithm: token_bucket, limit: 90000380, per: 7884h2m17.065s, burst: 999999393}]
`, []string{
			`2: api_limits.per_key[1]: is the same limit as per_key[0]`,
			`4: api_limits.per_ip[1].burst: 999999393: must be so small that it fills again within 10 years, at 90000380 per 328 days, 12 hours, 2 minutes, 17 seconds and 65 milliseconds`,
		}},
		{"API limits", `api_limits:
  per_key:
    - {algorithm: gcra, limit: 0, per: 1s}
    - {algorithm: fixed_window, limit: 1, per: 1s, burst: 2}
    - {algorithm: sliding_window, limit: 1, per: 1s, precision: 2s}
    - {algorithm: sliding_log, limit: 1, per: 1s, precision: 1s, aligned: true, refill: greedy}
    - {algorithm: token_bucket, limit: 1, per: 1s, refill: often, aligned: maybe}
  per_ip: [{algorithm: fixed_window, limit: 1, per: 1s}, {algorithm: fixed_window, limit: 2, per: 1s}, {algorithm: fixed_window, limit: 3, per: 1s}, {algorithm: fixed_window, limit: 4, per: 1s}, {algorithm: fixed_window, limit: 5, per: 1s}, {algorithm: fixed_window, limit: 6, per: 1s}, {algorithm: fixed_window, limit: 7, per: 1s}, {algorithm: fixed_window, limit: 8, per: 1s}, {algorithm: fixed_window, limit: 9, per: 1s}]
  per_user: []
  trusted_proxies: [10.0.0.0/8, fd00::/33, "1.2.3.4", nonsense, 7, 10.0.0.0/99]
`, []string{
			`3: api_limits.per_key[0].algorithm: "gcra": must be one of fixed_window, sliding_log, sliding_window, token_bucket, leaky_bucket`,
			`3: api_limits.per_key[0].limit: 0: must be a whole number from 1 to 1000000000`,
			`4: api_limits.per_key[1].burst: is for token_bucket and leaky_bucket only`,
			`5: api_limits.per_key[2].precision: "2s": must be at most per, which is 1 second`,
			`6: api_limits.per_key[3].precision: is for sliding_window only`,
			`6: api_limits.per_key[3].aligned: is for fixed_window only`,
			`6: api_limits.per_key[3].refill: is for token_bucket only`,
			`7: api_limits.per_key[4].aligned: "maybe": must be true or false`,
			`7: api_limits.per_key[4].refill: "often": must be one of greedy, interval`,
			`8: api_limits.per_ip: must have at most 8 limits, has 9`,
			`9: api_limits.per_user: is not a setting; allowed: per_key, per_ip, trusted_proxies`,
			`10: api_limits.trusted_proxies[3]: "nonsense": must be an address or a network, such as 10.1.2.3, 10.0.0.0/8 or fd00::/8`,
			`10: api_limits.trusted_proxies[4]: 7: must be an address or a network, such as 10.1.2.3, 10.0.0.0/8 or fd00::/8`,
			`10: api_limits.trusted_proxies[5]: "10.0.0.0/99": must be an address or a network, such as 10.1.2.3, 10.0.0.0/8 or fd00::/8`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, errs := read(tt.text)
			want := "sendquota.yaml:" + strings.Join(tt.want, "\nsendquota.yaml:")
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(errs.Error(), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.Contains(errs.Error(), "hush") {
				t.Error("a secret in the errors")
			}
		})
	}
}

// TestRetention_DefaultCoversWindows: where nothing is said, the longest window is kept.
func TestRetention_DefaultCoversWindows(t *testing.T) {
	t.Parallel()
	c, errs := read("policy: {rules: [{name: a, limit: 1, window: 8760h}]}")
	if want := (Retention{Pushes: 8760 * time.Hour, Sends: 9600 * time.Hour, Log: 9600 * time.Hour}); errs != nil || c.Retention != want {
		t.Errorf("%+v, errors %v", c.Retention, errs)
	}
}

func TestChannel_DefaultTimeoutFitsLease(t *testing.T) {
	t.Parallel()
	c, errs := read("delivery: {lease: 100ms}")
	if errs != nil || c.Channels[0].Timeout != 50*time.Millisecond {
		t.Errorf("timeout %s, errs %v", c.Channels[0].Timeout, errs)
	}
}
