package audit_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store/audit"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
)

// TestAudit_OtherPolicies checks that a booking that breaks the file's rules is no violation if the tenant has rules of
// its own, or the recipient has limits.
func TestAudit_OtherPolicies(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*bundle){
		"a policy of its own": func(b *bundle) {
			b.Adopt(t, time.Hour, `{"rules": [{"name": "minute", "limit": 2, "window": "1m"}]}`)
		},
		"limits of one's own": func(b *bundle) { b.MustDescribe(t, "anna", `limits = '{"minute": 2}'`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupAlone(t)
			b.Booked(t, "anna", time.Hour)
			b.Booked(t, "anna", time.Hour+59*time.Second)
			if found := b.auditInChunks(t, storetest.PerMinute, 1); len(found) != 1 || found[0].Check != "promised-window" {
				t.Errorf("by the file's rules: %+v", found)
			}
			change(b)
			if found := b.auditInChunks(t, storetest.PerMinute, 1); len(found) > 0 {
				t.Errorf("%+v", found)
			}
		})
	}
}

// accepted books a push for a time from now, and forges that it was accepted some time ago.
func (b *bundle) accepted(t testing.TB, channel, category string, in, ago time.Duration) push.Push {
	t.Helper()
	d := storetest.Draft(b.TenantID, "anna", in)
	d.Push.Channel, d.Push.Category = channel, category
	terms := b.TenantID // its own terms would refuse some of these
	version := storetest.Ask[int64](t, b.DB, `WITH old AS (SELECT policy_version AS v FROM tenants WHERE id = $1), gone AS (UPDATE tenants SET policy_version = 0 WHERE id = $1) SELECT v FROM old`, terms)
	optedOut := storetest.Ask[bool](t, b.DB, `WITH old AS (SELECT described AS v FROM tenants WHERE id = $1), gone AS (UPDATE tenants SET described = false WHERE id = $1) SELECT v FROM old`, terms)
	v := storetest.MustBook(t, b.Store, nil, d)
	if v.Outcome != booking.Booked {
		t.Fatalf("%+v", v)
	}
	b.Exec(t, `UPDATE tenants SET policy_version = $2, described = $3 WHERE id = $1`, terms, version, optedOut)
	b.Exec(t, `UPDATE pushes SET created_at = clock_timestamp() - $2::interval, updated_at = clock_timestamp() - $2::interval WHERE id = $1`, v.Push.ID, ago)
	return v.Push
}

// movedTo forges that a push was moved to its send time some time ago.
func (b *bundle) movedTo(t testing.TB, p push.Push, ago time.Duration) {
	t.Helper()
	b.Exec(t, `UPDATE pushes SET updated_at = clock_timestamp() - $2::interval, plan = plan + 1 WHERE id = $1`, p.ID, ago)
}

const (
	onePerHour = `{"rules": [{"name": "hour", "limit": 1, "window": "1h"}]}`
	twoPerHour = `{"rules": [{"name": "hour", "limit": 2, "window": "1h"}]}`
)

// TestAudit_OwnTerms forges rows that a tenant's policies just allow, and rows that they do not.
func TestAudit_OwnTerms(t *testing.T) {
	t.Parallel()
	const h, m = time.Hour, time.Minute
	noonIn := func(zoneName string, days int) time.Duration { // noon of a later day, relative to the start of the tests
		in, err := time.LoadLocation(zoneName)
		if err != nil {
			t.Fatal(err)
		}
		y, month, d := storetest.Began.In(in).Date()
		return time.Date(y, month, d+days, 12, 0, 0, 0, in).Sub(storetest.Began)
	}
	for name, row := range map[string]struct {
		forge func(t *testing.T, b *bundle)
		want  string
	}{
		"two within a window": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, onePerHour)
			b.accepted(t, "log", "", 2*h, 4*h)
			b.accepted(t, "log", "", 3*h-1*time.Second, 3*h)
		}, "promised-window"},
		"two a window apart": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, onePerHour)
			b.accepted(t, "log", "", 2*h, 4*h)
			b.accepted(t, "log", "", 3*h, 3*h)
		}, ""},
		"two of one transaction": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, onePerHour)
			b.accepted(t, "log", "", 2*h, 4*h)
			b.accepted(t, "log", "", 2*h+m, 4*h)
			b.Exec(t, `UPDATE pushes SET created_at = (SELECT min(created_at) FROM pushes), updated_at = (SELECT min(created_at) FROM pushes)`)
		}, "promised-window"},
		"booked before the policy": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, twoPerHour)
			b.accepted(t, "log", "", 2*h, 4*h)
			b.accepted(t, "log", "", 2*h+m, 3*h)
			b.Adopt(t, 2*h, onePerHour)
		}, ""},
		"booked behind the policy": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, twoPerHour)
			b.accepted(t, "log", "", 2*h, 4*h)
			b.Adopt(t, 2*h, onePerHour)
			b.accepted(t, "log", "", 2*h+m, 1*h)
		}, "promised-window"},
		"booked while the policy changed": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, twoPerHour)
			b.accepted(t, "log", "", 2*h, 4*h)
			b.Adopt(t, 2*h, onePerHour)
			b.accepted(t, "log", "", 2*h+m, 2*h-20*time.Second)
		}, ""},
		"the file's policy again": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, twoPerHour)
			b.Adopt(t, 4*h, "")
			b.accepted(t, "log", "", 2*h, 3*h)
			b.accepted(t, "log", "", 2*h+30*time.Second, 2*h)
		}, "promised-window"},
		"moved before the policy allowed less": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, twoPerHour)
			b.accepted(t, "log", "", 2*h, 4*h)
			b.movedTo(t, b.accepted(t, "log", "", 2*h+m, 4*h), 3*h)
			b.Adopt(t, 2*h, onePerHour)
		}, ""},
		"moved when the policy allowed less": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, twoPerHour)
			b.accepted(t, "log", "", 2*h, 4*h)
			p := b.accepted(t, "log", "", 2*h+m, 4*h)
			b.Adopt(t, 3*h, onePerHour)
			b.movedTo(t, p, 2*h)
		}, "promised-window"},
		"moved, and tried since: nobody knows when": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, twoPerHour)
			b.accepted(t, "log", "", 2*h, 4*h)
			p := b.accepted(t, "log", "", 2*h+m, 4*h)
			b.Adopt(t, 3*h, onePerHour)
			b.movedTo(t, p, 2*h)
			b.Exec(t, `UPDATE pushes SET next_at = next_at + interval '1 hour', plan = plan + 1 WHERE id = $1`, p.ID)
		}, ""},
		"a channel that the rule does not count": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, `{"rules": [{"name": "sms", "limit": 1, "window": "1h", "channels": ["sms"]}]}`)
			b.accepted(t, "sms", "", 2*h, 4*h)
			b.accepted(t, "log", "", 2*h+m, 3*h)
		}, ""},
		"a channel that the rule counts": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, `{"rules": [{"name": "sms", "limit": 1, "window": "1h", "channels": ["sms"]}]}`)
			b.accepted(t, "sms", "", 2*h, 4*h)
			b.accepted(t, "log", "", 2*h+m, 3*h)
			b.accepted(t, "sms", "", 2*h+2*m, 2*h)
		}, "promised-window"},
		"the third of two in a day of Lord Howe": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, `{"rules": [{"name": "day", "limit": 2, "per": "day", "zone": "Australia/Lord_Howe"}]}`)
			for i, at := range []time.Duration{-12 * h, 0, 12*h - m} {
				b.accepted(t, "log", "", noonIn("Australia/Lord_Howe", 2)+at, 4*h-time.Duration(i)*h)
			}
		}, "promised-window"},
		"the third is on the next day": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, `{"rules": [{"name": "day", "limit": 2, "per": "day", "zone": "Australia/Lord_Howe"}]}`)
			for i, at := range []time.Duration{-12 * h, 0, 12*h + m} {
				b.accepted(t, "log", "", noonIn("Australia/Lord_Howe", 2)+at, 4*h-time.Duration(i)*h)
			}
		}, ""},
		"bypasses, and comes first": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, `{"rules": [{"name": "hour", "limit": 1, "window": "1h"}], "categories": {"alerts": {"bypass": true}}}`)
			b.accepted(t, "log", "", 2*h, 4*h)
			b.accepted(t, "log", "alerts", 2*h+m, 3*h)
		}, ""},
		"comes behind one that bypassed": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, `{"rules": [{"name": "hour", "limit": 1, "window": "1h"}], "categories": {"alerts": {"bypass": true}}}`)
			b.accepted(t, "log", "alerts", 2*h, 4*h)
			b.accepted(t, "log", "", 2*h+m, 3*h)
		}, "promised-window"},
		"into a reserved place": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, `{"rules": [{"name": "hour", "limit": 2, "window": "1h"}], "categories": {"alerts": {"reserve": {"hour": 1}}}}`)
			b.accepted(t, "log", "", 2*h, 4*h)
			b.accepted(t, "log", "news", 2*h+m, 3*h)
		}, "promised-window"},
		"into quiet hours": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, `{"quiet_hours": [{"name": "noon", "from": "11:30", "until": "12:30", "zone": "Asia/Kathmandu"}]}`)
			b.accepted(t, "log", "", noonIn("Asia/Kathmandu", 2), 4*h)
		}, "quiet-hours"},
		"at the end of quiet hours": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, `{"quiet_hours": [{"name": "noon", "from": "11:30", "until": "12:30", "zone": "Asia/Kathmandu"}]}`)
			b.accepted(t, "log", "", noonIn("Asia/Kathmandu", 2)+30*m, 4*h)
		}, ""},
		"into the recipient's own quiet hours": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, `{"quiet_hours": [{"name": "noon", "from": "11:30", "until": "12:30", "zone": "recipient"}]}`)
			b.MustDescribe(t, "anna", `time_zone = 'Asia/Tokyo', updated_at = clock_timestamp() - interval '5 hours'`)
			b.accepted(t, "log", "", noonIn("Asia/Tokyo", 2), 4*h)
		}, "quiet-hours"},
		"the recipient has moved since": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, `{"quiet_hours": [{"name": "noon", "from": "11:30", "until": "12:30", "zone": "recipient"}]}`)
			b.accepted(t, "log", "", noonIn("Asia/Tokyo", 2), 4*h)
			b.MustDescribe(t, "anna", `time_zone = 'Asia/Tokyo', updated_at = clock_timestamp() - interval '3 hours'`)
		}, ""},
		"above a limit of her own": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, onePerHour)
			b.MustDescribe(t, "anna", `limits = '{"hour": 2}', updated_at = clock_timestamp() - interval '5 hours'`)
			for i := range 3 {
				b.accepted(t, "log", "", 2*h+time.Duration(i)*m, 4*h-time.Duration(i)*h)
			}
		}, "promised-window"},
		"within a limit of her own, under the file's policy": {func(t *testing.T, b *bundle) {
			b.MustDescribe(t, "anna", `limits = '{"minute": 2}', updated_at = clock_timestamp() - interval '5 hours'`)
			b.accepted(t, "log", "", 2*h, 4*h)
			b.accepted(t, "log", "", 2*h+time.Second, 3*h)
		}, ""},
		"accepted behind an opt-out": {func(t *testing.T, b *bundle) {
			b.MustDescribe(t, "anna", `opt_out_categories = '{news}', updated_at = clock_timestamp() - interval '5 hours'`)
			b.accepted(t, "log", "news", 2*h, 4*h)
		}, "opted-out"},
		"accepted before an opt-out": {func(t *testing.T, b *bundle) {
			b.accepted(t, "log", "news", 2*h, 4*h)
			b.MustDescribe(t, "anna", `opt_out_categories = '{news}', updated_at = clock_timestamp() - interval '3 hours'`)
		}, ""},
		"sent twice within a window": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, onePerHour)
			b.SentThrough(t, "anna", "log", "", 50*m)
			b.SentThrough(t, "anna", "sms", "", 10*m)
		}, "actual-window"},
		"sent twice, when that was allowed": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, twoPerHour)
			b.SentThrough(t, "anna", "log", "", 50*m)
			b.SentThrough(t, "anna", "sms", "", 10*m)
			b.Adopt(t, 5*m, onePerHour)
		}, ""},
		"sent twice, through channels that do not share a rule": {func(t *testing.T, b *bundle) {
			b.Adopt(t, 5*h, `{"rules": [{"name": "sms", "limit": 1, "window": "1h", "channels": ["sms"]}, {"name": "log", "limit": 1, "window": "1h", "channels": ["log"]}]}`)
			b.SentThrough(t, "anna", "log", "", 50*m)
			b.SentThrough(t, "anna", "sms", "", 10*m)
		}, ""},
		"sent in quiet hours": {func(t *testing.T, b *bundle) {
			document, _ := storetest.QuietNow("UTC", time.UTC)
			b.Adopt(t, 5*h, document)
			b.SentThrough(t, "anna", "log", "", 10*m)
		}, "quiet-hours"},
		"sent in spite of an opt-out": {func(t *testing.T, b *bundle) {
			b.MustDescribe(t, "anna", `opt_out_channels = '{log}', updated_at = clock_timestamp() - interval '5 hours'`)
			b.SentThrough(t, "anna", "log", "", 10*m)
		}, "opted-out"},
		"another tenant's": {func(t *testing.T, b *bundle) {
			other := storetest.Ask[[16]byte](t, b.DB, `INSERT INTO tenants (id, name, policy_version) VALUES (gen_random_uuid(), 'other', 1) RETURNING id`)
			b.Exec(t, `INSERT INTO policies (tenant_id, version, at, document) VALUES ($1, 1, clock_timestamp() - interval '5 hours', $2)`, other, onePerHour)
			b.Adopt(t, 5*h, twoPerHour)
			b.accepted(t, "log", "", 2*h, 4*h)
			b.accepted(t, "log", "", 2*h+m, 3*h)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupAlone(t)
			row.forge(t, b)
			found := slices.DeleteFunc(b.auditInChunks(t, storetest.PerMinute, 1), func(f audit.Finding) bool { return f.Check == "orphan" }) // forged attempts have no push
			if row.want == "" && len(found) > 0 || row.want != "" && (len(found) != 1 || found[0].Check != row.want) {
				t.Errorf("found %+v, want %q", found, row.want)
			}
			for _, f := range found {
				if f.Tenant != b.TenantID || f.Recipient != "anna" || f.Push == uuid.Nil || f.Detail == "" || strings.Contains(f.Detail, "anna") {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// TestAudit_FileTerms checks that rules of the file that differ from push to push apply to tenants without rules of
// their own.
func TestAudit_FileTerms(t *testing.T) {
	t.Parallel()
	b, one := setupAlone(t), 1
	b.Booked(t, "anna", 2*time.Hour)
	b.Booked(t, "anna", 2*time.Hour)
	for channel, want := range map[string]int{"log": 1, "sms": 0} {
		file, err := policy.Document{Rules: []policy.Rule{{Name: "month", Limit: &one, Per: "month", Channels: []string{channel}}}}.Compile([]string{"log", "sms"})
		if err != nil {
			t.Fatal(err)
		}
		if found := b.auditInChunks(t, file, 1); len(found) != want || want > 0 && found[0].Check != "promised-window" {
			t.Errorf("a rule for %s: %+v", channel, found)
		}
	}
}
