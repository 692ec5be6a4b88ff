package pushes_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/storetest"
	"github.com/sendquota/sendquota/internal/suppression"
)

// operations are all changes of a push. Each is tried on pushes in every state; other tests check its error and its
// answer.
var operations = map[string]func(t *testing.T, b *bundle, p push.Push){
	"claim": func(t *testing.T, b *bundle, p push.Push) { b.MustClaim(t, p.Recipient, nil) },
	"claim too late": func(t *testing.T, b *bundle, p push.Push) {
		b.Exec(t, `UPDATE pushes SET expires_at = clock_timestamp() WHERE id = $1`, p.ID)
		b.MustClaim(t, p.Recipient, nil)
	},
	"claim against the policy": func(t *testing.T, b *bundle, p push.Push) { b.MustClaim(t, p.Recipient, storetest.ThreeRules) },
	"cancel":                   func(t *testing.T, b *bundle, p push.Push) { _, _ = b.Cancel(t.Context(), p.Tenant, p.ID) },
	"move": func(t *testing.T, b *bundle, p push.Push) {
		p.SendAt = p.SendAt.Add(time.Hour)
		_, _ = b.Reschedule(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: p}}, Policy: storetest.ThreeRules})
	},
	"expire": func(t *testing.T, b *bundle, p push.Push) {
		b.Exec(t, `UPDATE pushes SET expires_at = clock_timestamp(), next_at = clock_timestamp() WHERE id = $1`, p.ID)
		_, _ = b.Expire(t.Context(), push.Lanes(1), 1000)
	},
	"claim of a suppressed address": func(t *testing.T, b *bundle, p push.Push) {
		b.Exec(t, `UPDATE pushes SET address = 'x' WHERE id = $1`, p.ID)
		b.Exec(t, `INSERT INTO suppressions (tenant_id, channel, address, reason, address_key) VALUES ($1, $2, 'x', 'manual', $3) ON CONFLICT DO NOTHING`, p.Tenant, p.Channel, suppression.KeyOf(p.Tenant, p.Channel, "x"))
		b.Exec(t, `UPDATE tenants SET suppresses = true WHERE id = $1`, p.Tenant)
		b.MustClaim(t, p.Recipient, nil)
	},
	"deliver":         func(t *testing.T, b *bundle, p push.Push) { b.MustFinish(t, b.attempt(t, p), storetest.Sent) },
	"refuse":          func(t *testing.T, b *bundle, p push.Push) { b.MustFinish(t, b.attempt(t, p), storetest.TryAgain) },
	"refuse for good": func(t *testing.T, b *bundle, p push.Push) { b.MustFinish(t, b.attempt(t, p), storetest.GaveUp) },
	"lose":            func(t *testing.T, b *bundle, p push.Push) { b.MustFinish(t, b.attempt(t, p), storetest.LostTrack) },
}

// attempt returns the claim of the push's running or last attempt.
func (b *bundle) attempt(t testing.TB, p push.Push) booking.Claim {
	t.Helper()
	c := booking.Claim{Push: p, Attempt: max(1, p.Attempts), StartedAt: p.CreatedAt}
	if n := len(p.Sends); n > 0 {
		c.StartedAt = p.Sends[n-1].StartedAt
	}
	if p.Status == push.Sending {
		c.Token = storetest.Ask[[16]byte](t, b.DB, `SELECT token FROM live WHERE push_id = $1`, p.ID)
	}
	return c
}

// TestStore_StateMachine tries every operation in every state, while a trigger records the changes of state. These
// changes must be exactly the arrows of [push.Arrows].
func TestStore_StateMachine(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Exec(t, `CREATE TABLE arrows (before text, after text)`)
	b.Exec(t, `CREATE FUNCTION draw() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO arrows VALUES (CASE WHEN TG_OP = 'INSERT' THEN '' WHEN NEW.id IN (SELECT id FROM was_under_way) THEN 'sending' ELSE OLD.status END, NEW.status);
		RETURN NEW; END $$`)
	b.Exec(t, `CREATE TABLE was_under_way (id uuid)`)
	b.Exec(t, `CREATE FUNCTION draw_attempt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		CASE WHEN TG_OP = 'DELETE' THEN INSERT INTO was_under_way VALUES (OLD.push_id);
		WHEN OLD.token IS NULL THEN INSERT INTO arrows VALUES ('scheduled', 'sending');
		ELSE INSERT INTO arrows VALUES ('sending', 'scheduled'); END CASE;
		RETURN NULL; END $$`)
	b.Exec(t, `CREATE TRIGGER attempted AFTER UPDATE ON live FOR EACH ROW WHEN ((OLD.token IS NULL) <> (NEW.token IS NULL)) EXECUTE FUNCTION draw_attempt()`)
	b.Exec(t, `CREATE TRIGGER ended AFTER DELETE ON live FOR EACH ROW WHEN (OLD.token IS NOT NULL) EXECUTE FUNCTION draw_attempt()`)
	b.Exec(t, `CREATE TRIGGER inserted AFTER INSERT ON pushes FOR EACH ROW EXECUTE FUNCTION draw()`)
	b.Exec(t, `CREATE TRIGGER changed AFTER UPDATE ON pushes FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION draw()`)
	for _, status := range push.Statuses {
		for name, op := range operations {
			p := b.InStatus(t, string(status)+" "+name, status)
			op(t, b, p)
			if after := b.MustRead(t, p); after.Status != status && after.Gen == p.Gen && after.Status != push.Sending {
				t.Errorf("%s made a push %s, and its wake-ups are not stale", name, after.Status)
			}
		}
	}

	rows, _ := b.DB.Query(t.Context(), `SELECT DISTINCT before, after FROM arrows`)
	drawn, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ From, To push.Status }])
	if err != nil {
		t.Fatal(err)
	}
	got, want := map[string]bool{}, map[string]bool{" → scheduled": true}
	for _, a := range drawn {
		got[string(a.From+" → "+a.To)] = true
	}
	for _, a := range push.Arrows {
		want[string(a.From+" → "+a.To)] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
