package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// inStatus brings a new push of the recipient into a state by the store's own means. A push that is scheduled has an
// attempt of unknown outcome behind it.
func (b *bundle) inStatus(t testing.TB, recipient string, status push.Status) push.Push {
	t.Helper()
	d := draft(b.tenant, recipient, 0)
	if status == push.Expired {
		d = draft(b.tenant, recipient, -time.Minute)
		d.Push.TTL = 30 * time.Second
	}
	p := book(t, b.Store, nil, d).Push
	switch status {
	case push.Scheduled:
		b.finish(t, b.claimed(t, p), lostTrack)
	case push.Sending:
		b.claimed(t, p)
	case push.Sent:
		b.finish(t, b.claimed(t, p), sent)
	case push.Failed:
		b.finish(t, b.claimed(t, p), gaveUp)
	case push.Canceled:
		if _, err := b.Cancel(t.Context(), p.Tenant, p.ID); err != nil {
			t.Fatal(err)
		}
	case push.Expired:
		if c := b.claim(t, recipient, nil); c.Outcome != booking.TooLate {
			t.Fatalf("%+v", c)
		}
	}
	b.wantStatus(t, p, status)
	return b.read(t, p)
}

// operations are all that changes a push. Each is tried on pushes in every state; its error and its answer are tested
// elsewhere.
var operations = map[string]func(t *testing.T, b *bundle, p push.Push){
	"claim": func(t *testing.T, b *bundle, p push.Push) { b.claim(t, p.Recipient, nil) },
	"claim too late": func(t *testing.T, b *bundle, p push.Push) {
		b.exec(t, `UPDATE pushes SET expires_at = clock_timestamp() WHERE id = $1`, p.ID)
		b.claim(t, p.Recipient, nil)
	},
	"claim against the policy": func(t *testing.T, b *bundle, p push.Push) { b.claim(t, p.Recipient, threeRules) },
	"cancel":                   func(t *testing.T, b *bundle, p push.Push) { _, _ = b.Cancel(t.Context(), p.Tenant, p.ID) },
	"move": func(t *testing.T, b *bundle, p push.Push) {
		p.SendAt = p.SendAt.Add(time.Hour)
		_, _ = b.Reschedule(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: p}}, Policy: threeRules})
	},
	"expire": func(t *testing.T, b *bundle, p push.Push) {
		b.exec(t, `UPDATE pushes SET expires_at = clock_timestamp(), next_at = clock_timestamp() WHERE id = $1`, p.ID)
		_, _ = b.Expire(t.Context(), push.Lanes(1), 1000)
	},
	"deliver":         func(t *testing.T, b *bundle, p push.Push) { b.finish(t, b.attempt(t, p), sent) },
	"refuse":          func(t *testing.T, b *bundle, p push.Push) { b.finish(t, b.attempt(t, p), tryAgain) },
	"refuse for good": func(t *testing.T, b *bundle, p push.Push) { b.finish(t, b.attempt(t, p), gaveUp) },
	"lose":            func(t *testing.T, b *bundle, p push.Push) { b.finish(t, b.attempt(t, p), lostTrack) },
}

// attempt is the claim of the push's running or last attempt.
func (b *bundle) attempt(t testing.TB, p push.Push) booking.Claim {
	t.Helper()
	c := booking.Claim{Push: p, Attempt: max(1, p.Attempts), StartedAt: p.CreatedAt}
	if n := len(p.Sends); n > 0 {
		c.StartedAt = p.Sends[n-1].StartedAt
	}
	if p.Status == push.Sending {
		c.Token = ask[[16]byte](t, b.db, `SELECT token FROM live WHERE push_id = $1`, p.ID)
	}
	return c
}

// TestStore_StateMachine tries every operation in every state, while a trigger records the changes of state: they are
// all arrows of [push.Arrows], and no others.
func TestStore_StateMachine(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.exec(t, `CREATE TABLE arrows (before text, after text)`)
	b.exec(t, `CREATE FUNCTION draw() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO arrows VALUES (CASE WHEN TG_OP = 'INSERT' THEN '' WHEN NEW.id IN (SELECT id FROM was_under_way) THEN 'sending' ELSE OLD.status END, NEW.status);
		RETURN NEW; END $$`)
	b.exec(t, `CREATE TABLE was_under_way (id uuid)`)
	b.exec(t, `CREATE FUNCTION draw_attempt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		CASE WHEN TG_OP = 'DELETE' THEN INSERT INTO was_under_way VALUES (OLD.push_id);
		WHEN OLD.token IS NULL THEN INSERT INTO arrows VALUES ('scheduled', 'sending');
		ELSE INSERT INTO arrows VALUES ('sending', 'scheduled'); END CASE;
		RETURN NULL; END $$`)
	b.exec(t, `CREATE TRIGGER attempted AFTER UPDATE ON live FOR EACH ROW WHEN ((OLD.token IS NULL) <> (NEW.token IS NULL)) EXECUTE FUNCTION draw_attempt()`)
	b.exec(t, `CREATE TRIGGER ended AFTER DELETE ON live FOR EACH ROW WHEN (OLD.token IS NOT NULL) EXECUTE FUNCTION draw_attempt()`)
	b.exec(t, `CREATE TRIGGER inserted AFTER INSERT ON pushes FOR EACH ROW EXECUTE FUNCTION draw()`)
	b.exec(t, `CREATE TRIGGER changed AFTER UPDATE ON pushes FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION draw()`)
	for _, status := range push.Statuses {
		for name, op := range operations {
			p := b.inStatus(t, string(status)+" "+name, status)
			op(t, b, p)
			if after := b.read(t, p); after.Status != status && after.Gen == p.Gen && after.Status != push.Sending {
				t.Errorf("%s made a push %s, and its wake-ups are not stale", name, after.Status)
			}
		}
	}

	rows, _ := b.db.Query(t.Context(), `SELECT DISTINCT before, after FROM arrows`)
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
