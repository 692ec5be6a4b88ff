package audit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store/audit"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// TestAudit_Bounds forges rows that just break a guarantee, and rows that just keep it.
func TestAudit_Bounds(t *testing.T) {
	t.Parallel()
	policy := quota.Policy{{Name: "minute", Limit: 1, Window: time.Minute}}
	const s = time.Second
	ago := func(b *bundle, p push.Push, column string, ago time.Duration) {
		b.Exec(t, `UPDATE pushes SET `+column+` = clock_timestamp() - $2::interval WHERE id = $1`, p.ID, ago)
	}
	lapsed := func(b *bundle, p push.Push, ago time.Duration) {
		b.Exec(t, `UPDATE live SET next_at = clock_timestamp() - $2::interval, started_at = clock_timestamp() - $2::interval - interval '1 minute' WHERE push_id = $1`, p.ID, ago)
		b.Exec(t, `UPDATE pushes SET send_at = send_at - interval '1 hour' WHERE id = $1`, p.ID)
	}
	for name, row := range map[string]struct {
		forge func(t *testing.T, b *bundle)
		want  string
	}{
		"two promised in a minute":       {func(t *testing.T, b *bundle) { b.Booked(t, "anna", time.Hour); b.Booked(t, "anna", time.Hour+59*s) }, "promised-window"},
		"two promised, a minute apart":   {func(t *testing.T, b *bundle) { b.Booked(t, "anna", time.Hour); b.Booked(t, "anna", time.Hour+60*s) }, ""},
		"two promised to two recipients": {func(t *testing.T, b *bundle) { b.Booked(t, "anna", time.Hour); b.Booked(t, "bert", time.Hour) }, ""},
		"one of two is canceled": {func(t *testing.T, b *bundle) {
			b.InStatus(t, "anna", push.Canceled)
			b.InStatus(t, "anna", push.Sent)
		}, ""},
		"two sent in a minute": {func(t *testing.T, b *bundle) {
			b.Attempted(t, b.TenantID, "anna", push.Delivered, 100*s, 100*s)
			b.Attempted(t, b.TenantID, "anna", push.Unknown, 41*s, 40*s)
		}, "actual-window"},
		"one was handed over just a window before": {func(t *testing.T, b *bundle) {
			b.Attempted(t, b.TenantID, "anna", push.Delivered, 102*s, 41*s)
			b.Exec(t, `UPDATE sends SET handed_at = started_at + interval '1 second'`)
			b.Attempted(t, b.TenantID, "anna", push.Delivered, 40*s, 30*s)
		}, ""},
		"one was handed over within the window": {func(t *testing.T, b *bundle) {
			b.Attempted(t, b.TenantID, "anna", push.Delivered, 102*s, 41*s)
			b.Exec(t, `UPDATE sends SET handed_at = started_at + interval '3 seconds'`)
			b.Attempted(t, b.TenantID, "anna", push.Delivered, 40*s, 30*s)
		}, "actual-window"},
		"began before the window, and ended in it": {func(t *testing.T, b *bundle) {
			b.Attempted(t, b.TenantID, "anna", push.Unknown, 110*s, 90*s)
			b.Attempted(t, b.TenantID, "anna", push.Delivered, 31*s, 30*s)
		}, "actual-window"},
		"the first was sent before what is looked at": {func(t *testing.T, b *bundle) {
			b.Attempted(t, b.TenantID, "anna", push.Delivered, 3670*s, 3650*s)
			b.Attempted(t, b.TenantID, "anna", push.Delivered, 3595*s, 3590*s)
		}, "actual-window"},
		"the first was promised before what is looked at": {func(t *testing.T, b *bundle) {
			b.Booked(t, "anna", -time.Hour-30*s)
			b.Booked(t, "anna", -time.Hour)
			b.Exec(t, `UPDATE pushes SET next_at = clock_timestamp()`)
		}, "promised-window"},
		"both were promised before": {func(t *testing.T, b *bundle) {
			b.Booked(t, "anna", -time.Hour-50*s)
			b.Booked(t, "anna", -time.Hour-1*s)
			b.Exec(t, `UPDATE pushes SET next_at = clock_timestamp()`)
		}, ""},
		"one of two was refused": {func(t *testing.T, b *bundle) {
			b.Attempted(t, b.TenantID, "anna", push.Refused, 100*s, 100*s)
			b.Attempted(t, b.TenantID, "anna", push.Delivered, 41*s, 40*s)
		}, ""},
		"two sent, a minute apart": {func(t *testing.T, b *bundle) {
			b.Attempted(t, b.TenantID, "anna", push.Delivered, 101*s, 100*s)
			b.Attempted(t, b.TenantID, "anna", push.Delivered, 40*s, 30*s)
		}, ""},
		"two at the same time": {func(t *testing.T, b *bundle) {
			b.Attempted(t, b.TenantID, "anna", push.Refused, 100*s, 40*s)
			b.Attempted(t, b.TenantID, "anna", push.Refused, 41*s, 30*s)
		}, "overlap"},
		"due and forgotten":     {func(t *testing.T, b *bundle) { ago(b, b.Booked(t, "anna", -time.Hour), "next_at", 301*s) }, "overdue"},
		"due, and not yet late": {func(t *testing.T, b *bundle) { ago(b, b.Booked(t, "anna", -time.Hour), "next_at", 290*s) }, ""},
		"forgotten before what is looked at": {func(t *testing.T, b *bundle) {
			ago(b, b.Booked(t, "anna", -5*time.Hour), "next_at", 4*time.Hour)
		}, "overdue"},
		"behind a long attempt": {func(t *testing.T, b *bundle) {
			b.InStatus(t, "anna", push.Sending)
			ago(b, b.Booked(t, "anna", -time.Hour), "next_at", 301*s)
		}, ""},
		"lost and not reaped":      {func(t *testing.T, b *bundle) { lapsed(b, b.InStatus(t, "anna", push.Sending), 301*s) }, "lost"},
		"lost, and not yet reaped": {func(t *testing.T, b *bundle) { lapsed(b, b.InStatus(t, "anna", push.Sending), 290*s) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupAlone(t)
			b.Exec(t, `BEGIN`) // all attempts are forged relative to one time
			row.forge(t, b)
			b.Exec(t, `COMMIT`)
			findings, err := b.Audit(t.Context(), policy, storetest.Began.Add(-time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			findings = slices.DeleteFunc(findings, func(f audit.Finding) bool { return f.Check == "orphan" }) // forged attempts have no push
			switch {
			case row.want == "" && len(findings) == 0:
			case row.want != "" && len(findings) == 1 && findings[0].Check == row.want:
				if f := findings[0]; f.Tenant != b.TenantID || f.Recipient != "anna" || f.Push == uuid.Nil || f.Detail == "" {
					t.Errorf("%+v", f)
				}
			default:
				t.Errorf("found %+v, want %q", findings, row.want)
			}
		})
	}
}
