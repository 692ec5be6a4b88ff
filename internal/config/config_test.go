package config

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/ratelimit"
)

// services is an environment that has all that is required, and more after it.
func services(more ...string) []string {
	return append([]string{"HOME=/home/me", "DATABASE_URL=postgres://u:p@db/sq", "REDIS_URL=redis://:p@cache:6379/1"}, more...)
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sendquota.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// rules is a policy of these rules.
func rules(all ...policy.Rule) Policy { return Policy{Document: policy.Document{Rules: all}} }

// defaults is the Config without any setting.
func defaults() Config {
	return Config{
		Addr:     "127.0.0.1:8080",
		LogLevel: slog.LevelInfo,
		Policy: rules(
			policy.Rule{Name: "per-minute", Limit: new(1), Window: "1m"},
			policy.Rule{Name: "per-hour", Limit: new(5), Window: "1h"},
			policy.Rule{Name: "per-day", Limit: new(10), Window: "24h"},
		),
		Channels:  []Channel{{Name: "log", Type: Log, Timeout: 10 * time.Second, OnUnknown: Retry, MaxAttempts: 8, Backoff: Backoff{5 * time.Second, 15 * time.Minute}, Levels: Levels{70, 20, 10}}},
		APILimits: APILimits{PerKey: []ratelimit.Limit{}, PerIP: []ratelimit.Limit{}},
		APIKeys:   APIKeys{MaxPerTenant: 100},
		HTTP:      HTTP{MaxConnections: 10_000, Drain: 5 * time.Second},
		Console:   Console{SessionLifetime: 12 * time.Hour, SessionIdle: 2 * time.Hour, MaxUsersPerTenant: 100, OIDC: OIDC{GroupsClaim: "groups"}},
		Database:  Database{MaxConnections: 16, ReadConnections: 8, ReadTimeout: 3 * time.Second},
		Redis:     Redis{MaxConnections: 64},
		Delivery: Delivery{Concurrency: 256, Lease: time.Minute, DefaultTTL: 24 * time.Hour, MaxHorizon: 8760 * time.Hour, Lanes: 4, Queues: 1, Horizon: 90 * time.Second,
			ArmLease: time.Minute, RedisPatience: 15 * time.Second, AuditInterval: 15 * time.Minute},
		Webhooks:   Webhooks{MaxPerTenant: 20, Timeout: 10 * time.Second, DisableAfter: 72 * time.Hour, Retention: 168 * time.Hour},
		Schedules:  Schedules{MaxPerTenant: 25000},
		Campaigns:  Campaigns{MaxPerTenant: 1000, MaxAudience: 5_000_000, MaxAudienceBytes: 1 << 30},
		TenantCaps: TenantCaps{AudienceBytes: 10 << 30},

		TenantChannels: TenantChannels{Max: 20, Types: []string{"webhook", "sms", "email", "fcm", "apns"}},
		Retention:      Retention{Pushes: 90 * 24 * time.Hour, Sends: 400 * 24 * time.Hour, Log: 400 * 24 * time.Hour},
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	got, err := LoadDev(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(defaults(), got); diff != "" {
		t.Errorf("without any setting (-want +got):\n%s", diff)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "policy: {rules: []}\nchannels: {push: {type: webhook, url: 'https://x.test', secret: '${SENDQUOTA_PUSH_SECRET}'}}\n")
	got, err := Load(services("SENDQUOTA_ADDR=:9", "SENDQUOTA_METRICS_ADDR=[::1]:10", "SENDQUOTA_LOG_LEVEL=warn",
		"SENDQUOTA_CONFIG="+path, "SENDQUOTA_PUSH_SECRET=0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	want := defaults()
	want.DatabaseURL, want.RedisURL, want.File = "postgres://u:p@db/sq", "redis://:p@cache:6379/1", path
	want.Addr, want.MetricsAddr, want.LogLevel = ":9", "[::1]:10", slog.LevelWarn
	want.Policy = Policy{}
	want.Channels[0].Name, want.Channels[0].Type = "push", Webhook
	want.Channels[0].Webhook.URL, want.Channels[0].Webhook.Secret = "https://x.test", "0123456789abcdef"
	// cmp formats a Secret as redacted, but compares what it is.
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLoad_Required(t *testing.T) {
	t.Parallel()
	database := []string{"DATABASE_URL=postgres://db/sq"}
	if _, err := LoadTool(database); err != nil {
		t.Errorf("a tool needs Postgres only: %v", err)
	}
	_, err := Load(database)
	var errs Errors
	if !errors.As(err, &errs) || len(errs) != 1 || errs[0].Field != "REDIS_URL" {
		t.Errorf("Load without REDIS_URL: %v", err)
	}
	_, err = Load(nil)
	if errors.As(err, &errs); len(errs) != 2 || errs[0].Field != "DATABASE_URL" {
		t.Errorf("Load of nothing: %v", err)
	}
}

func TestLoad_AllErrorsAtOnce(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "delivery:\n  queues: 0\npolcy: {}\n")
	_, err := Load(services("SENDQUOTA_CONFIG="+path, "SENDQUOTA_LOG_LEVEL=verbos", "SENDQUOTA_ADRR=:1"))
	want := `SENDQUOTA_LOG_LEVEL: "verbos": must be one of debug, info, warn, error
` + path + `:2: delivery.queues: 0: must be a whole number from 1 to 64
` + path + `:3: polcy: is not a setting; allowed: policy, channels, tenant_channels, api_limits, api_keys, tenant_caps, http, console, database, redis, delivery, webhooks, schedules, campaigns, retention (did you mean policy?)
SENDQUOTA_ADRR: is not a setting; allowed: DATABASE_URL, REDIS_URL, SENDQUOTA_ADDR, SENDQUOTA_API, SENDQUOTA_API_KEY, SENDQUOTA_CONFIG, SENDQUOTA_LOG_LEVEL, SENDQUOTA_METRICS_ADDR, SENDQUOTA_SEAL_KEY, SENDQUOTA_SEAL_KEY_PREVIOUS (did you mean SENDQUOTA_ADDR?)`
	if err == nil {
		t.Fatal("no error found")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLoad_UnreadableFile(t *testing.T) {
	t.Parallel()
	_, err := LoadDev([]string{"SENDQUOTA_CONFIG=/no/such.yaml"})
	want := `SENDQUOTA_CONFIG: "/no/such.yaml": cannot be read: no such file or directory`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestDefaults_Nested reads every default of what the file need not have, in the way of a user who writes what is required
// and nothing else.
func TestDefaults_Nested(t *testing.T) {
	t.Parallel()
	c, errs := read(`
policy: {rules: [{name: a, limit: 1, window: 1s}]}
channels:
  hook:  {type: webhook, url: "https://h", throughput: {rate: 1}}
  text:  {type: sms, account_sid: AC1, auth_token: t, from: "12345"}
  mail:  {type: email, host: h, from: a@b}
  droid: {type: fcm, credentials_file: f}
  phone: {type: apns, key_file: f, key_id: ABCDE12345, team_id: ABCDE12345, topic: t}
api_limits: {per_key: [{algorithm: token_bucket, limit: 1, per: 1s}], per_ip: [{algorithm: fixed_window, limit: 1, per: 1s}]}
`)
	if errs != nil {
		t.Fatal(errs)
	}
	if got := c.Channels[0].Throughput; got != (Throughput{1, time.Second, 1, Messages}) {
		t.Errorf("throughput %+v", got)
	}
	if got := c.Channels[2].Email; got.Port != 587 || got.TLS != StartTLS {
		t.Errorf("e-mail %+v", got)
	}
}
