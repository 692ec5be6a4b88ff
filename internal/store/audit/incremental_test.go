package audit_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store/audit"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// sentAgo books a push, and forges that it was sent, and ended, some time ago.
func (b *bundle) sentAgo(t testing.TB, recipient string, ago time.Duration) push.Push {
	t.Helper()
	p := b.Booked(t, recipient, 0)
	b.MustFinish(t, b.Claimed(t, p), storetest.Sent)
	b.Parts(t, ago)
	b.Exec(t, `UPDATE pushes SET send_at = date_trunc('second', now() - $2::interval), requested_send_at = date_trunc('second', now() - $2::interval),
		next_at = date_trunc('second', now() - $2::interval), created_at = now() - $2::interval - interval '1 hour', updated_at = now() - $2::interval + interval '2 seconds' WHERE id = $1`, p.ID, ago)
	b.Exec(t, `UPDATE sends SET started_at = p.send_at, ended_at = p.send_at + interval '1 second', lease_until = p.send_at + interval '1 minute', handed_at = NULL
		FROM pushes p WHERE p.id = sends.push_id AND p.id = $1`, p.ID)
	return p
}

// pass makes a whole pass of a day back and ahead, and returns its findings and the number of pushes and attempts that
// it read.
func (b *bundle) pass(t testing.TB, recipients int) (found []audit.Finding, read int) {
	t.Helper()
	p := b.beginPlan(t, booking.AuditPlan{Policy: storetest.PerMinute, Back: 24 * time.Hour, Ahead: 24 * time.Hour}, recipients)
	for !p.Over() {
		c, own, err := p.Next(t.Context(), func(f audit.Finding) { found = append(found, f) })
		if err != nil || !own || c.Skipped != uuid.Nil {
			t.Fatal(c, own, err)
		}
		if !c.TooLong { // otherwise smaller chunks follow
			read += c.Rows
		}
	}
	return found, read
}

// only reports whether there are findings, and all of them name one push.
func only(found []audit.Finding, p push.Push) bool {
	return len(found) > 0 && !slices.ContainsFunc(found, func(f audit.Finding) bool { return f.Push != p.ID })
}

// TestPass_ReadsClosedOnce checks that a clean hour is read once when all of its pushes have ended. Hours that
// may change, or are broken, are read again.
func TestPass_ReadsClosedOnce(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	for i := range 20 {
		b.sentAgo(t, fmt.Sprint("closed ", i), 10*time.Hour)
	}
	late := b.Booked(t, "waits since then", -15*time.Hour) // keeps its hour open
	b.Exec(t, `UPDATE pushes SET next_at = now() + interval '1 hour' WHERE id = $1`, late.ID)
	b.sentAgo(t, "beside it", time.Since(late.SendAt.Truncate(time.Hour).Add(30*time.Minute))) // in that hour, too
	broken := b.sentAgo(t, "broken", 5*time.Hour)
	b.Exec(t, `UPDATE pushes SET attempts = 2 WHERE id = $1`, broken.ID)
	b.sentAgo(t, "recent", min(10*time.Minute, time.Since(time.Now().Truncate(time.Hour))/2)) // its hour is not over
	b.Booked(t, "ahead", time.Hour)

	// live: 2; pushes: 20 + 2 + 1 + 1 + 1; attempts: 20 + 1 + 1 + 1
	if found, read := b.pass(t, 10); !only(found, broken) || read != 2+25+23 {
		t.Errorf("first: %d rows, %+v", read, found)
	}
	for range 2 {
		if found, read := b.pass(t, 10); !only(found, broken) || read != 2+5+3 {
			t.Errorf("again: %d rows, %+v", read, found)
		}
	}
	// When nothing waits in these hours and nothing is broken, they are closed, too.
	b.MustCancel(t, late)
	b.Exec(t, `UPDATE pushes SET created_at = now() - interval '16 hours', updated_at = now() - interval '10 hours' WHERE id = $1`, late.ID)
	b.Exec(t, `UPDATE pushes SET attempts = 1 WHERE id = $1`, broken.ID)
	for i, want := range []int{1 + 5 + 3, 1 + 2 + 1} {
		if found, read := b.pass(t, 10); len(found) != 0 || read != want {
			t.Errorf("mended %d: %d rows, want %d; %+v", i, read, want, found)
		}
	}
}

// TestPass_LateAttempt checks that a new attempt is read although the hour of its push is closed, or dropped long
// ago.
func TestPass_LateAttempt(t *testing.T) {
	t.Parallel()
	for name, ago := range map[string]time.Duration{"closed": 10 * time.Hour, "gone": 100 * time.Hour} {
		b := setupAlone(t)
		p := b.sentAgo(t, "anna", ago)
		if found, _ := b.pass(t, 10); len(found) != 0 {
			t.Fatalf("%s: %+v", name, found)
		}
		b.Exec(t, `INSERT INTO sends SELECT push_id, 2, tenant_id, recipient_key, recipient, channel, now() - interval '1 minute', now(), NULL, now() - interval '1 minute', 'refused', '', '' FROM sends WHERE push_id = $1`, p.ID)
		found, _ := b.pass(t, 10)
		checks := map[string]int{}
		for _, f := range found {
			if checks[f.Check]++; f.Push != p.ID {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if checks["attempts"] == 0 || checks["after-end"] != 1 {
			t.Errorf("%s: found %v", name, checks)
		}
	}
}

// TestPass_LateAnswer checks that a late answer reopens the closed hours of its attempt and of a later one.
func TestPass_LateAnswer(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	late := b.Booked(t, "anna", 0)
	c := b.Claimed(t, late)
	b.giveUp(t, c, push.Scheduled)
	b.MustCancel(t, late)
	b.Exec(t, `UPDATE pushes SET send_at = date_trunc('second', now() - interval '10 hours'), created_at = now() - interval '11 hours', updated_at = now() - interval '10 hours' + interval '2 minutes' WHERE id = $1`, late.ID)
	b.Exec(t, `UPDATE sends SET started_at = p.send_at, ended_at = p.send_at + interval '1 minute', lease_until = p.send_at + interval '1 minute' FROM pushes p WHERE p.id = push_id`)
	c.StartedAt = storetest.Ask[time.Time](t, b.DB, `SELECT started_at FROM sends`)
	next := b.sentAgo(t, "anna", 8*time.Hour)
	for i, want := range []int{4, 0, 0} {
		if found, read := b.pass(t, 0); len(found) != 0 || read != want {
			t.Fatalf("pass %d: %d rows, want %d; %+v", i, read, want, found)
		}
	}
	f := storetest.Sent
	f.Handed = 2*time.Hour - 30*time.Second // when the push was canceled, and half a minute before the next one
	b.MustFinish(t, c, f)
	found, _ := b.pass(t, 0)
	checks := map[string]uuid.UUID{}
	for _, f := range found {
		checks[f.Check] = f.Push
	}
	if len(found) != 2 || checks["after-end"] != late.ID || checks["actual-window"] != next.ID {
		t.Errorf("found %+v", found)
	}
	b.Exec(t, `UPDATE sends SET handed_at = ended_at WHERE push_id = $1`, late.ID)
	b.Exec(t, `UPDATE pushes SET updated_at = updated_at + interval '2 minutes' WHERE id = $1`, late.ID)
	b.Exec(t, `UPDATE audited SET changed_at = changed_at - interval '2 minutes'`) // as if the answer had come two minutes ago
	for i, want := range []int{4, 0} {
		if found, read := b.pass(t, 0); len(found) != 0 || read != want {
			t.Errorf("mended, pass %d: %d rows, want %d; %+v", i, read, want, found)
		}
	}
}

// TestAudit_Kept checks that rows that retention has removed are no violation, and that missing rows within the
// retention are one.
func TestAudit_Kept(t *testing.T) {
	t.Parallel()
	kept := booking.Kept{Pushes: 50 * time.Hour, Sends: 60 * time.Hour}
	for name, row := range map[string]struct {
		ago   time.Duration
		forge string
		want  string
	}{
		"a push is gone, and its attempt is kept":   {51 * time.Hour, `DELETE FROM pushes WHERE id = $1`, ""},
		"a push is gone that has to be there":       {49 * time.Hour, `DELETE FROM pushes WHERE id = $1`, "orphan"},
		"an attempt is gone, and its push is kept":  {61 * time.Hour, `DELETE FROM sends WHERE push_id = $1`, ""},
		"an attempt is gone that has to be there":   {35 * time.Hour, `DELETE FROM sends WHERE push_id = $1`, "attempts outcome"},
		"a recipient differs, long ago":             {70 * time.Hour, `UPDATE sends SET channel = 'x' WHERE push_id = $1`, "orphan"},
		"a push was made long ago, and first tried": {35 * time.Hour, `UPDATE pushes SET created_at = now() - interval '61 hours', attempts = 3 WHERE id = $1; UPDATE sends SET attempt = 3 WHERE push_id = $1`, ""},
		"a push was made in time, and first tried":  {35 * time.Hour, `UPDATE pushes SET attempts = 3 WHERE id = $1; UPDATE sends SET attempt = 3 WHERE push_id = $1`, "attempts"},
		"an attempt in the middle is gone":          {35 * time.Hour, `UPDATE pushes SET created_at = now() - interval '61 hours', attempts = 3 WHERE id = $1; INSERT INTO sends SELECT push_id, 3, tenant_id, recipient_key, recipient, channel, started_at - interval '1 hour', lease_until, NULL, started_at - interval '1 hour', 'refused', '', '' FROM sends WHERE push_id = $1; UPDATE sends SET attempt = attempt + 7 WHERE push_id = $1; UPDATE sends SET attempt = CASE attempt WHEN 8 THEN 3 ELSE 1 END WHERE push_id = $1`, "attempts"},
		"the last attempt is gone":                  {35 * time.Hour, `UPDATE pushes SET created_at = now() - interval '61 hours' WHERE id = $1; DELETE FROM sends WHERE push_id = $1`, "attempts outcome"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupAlone(t)
			p := b.sentAgo(t, "anna", row.ago)
			b.Exec(t, strings.ReplaceAll(row.forge, "$1", "'"+p.ID.String()+"'::uuid"))
			found := storetest.FinishAudit(t, b.AuditSince(storetest.PerMinute, kept, time.Time{}))
			var checks []string
			for _, f := range found {
				checks = append(checks, f.Check)
			}
			if slices.Sort(checks); strings.Join(checks, " ") != row.want {
				t.Errorf("found %+v, want %q", found, row.want)
			}
		})
	}
}

// TestPass_Apart checks that a pass reads distant hours one after the other. It finds each violation once, also if
// a push of one of these hours was tried in the other.
func TestPass_Apart(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	old := b.sentAgo(t, "anna", 100*time.Hour)
	b.Exec(t, `INSERT INTO sends SELECT push_id, 2, tenant_id, recipient_key, recipient, channel, now() - interval '1 minute', now(), NULL, now() - interval '1 minute', 'refused', '', '' FROM sends WHERE push_id = $1`, old.ID)
	counted := b.sentAgo(t, "bert", 100*time.Hour)
	b.Exec(t, `UPDATE pushes SET attempts = 2 WHERE id = $1`, counted.ID)
	b.Exec(t, `INSERT INTO sends SELECT push_id, 2, tenant_id, recipient_key, recipient, channel, now() - interval '1 minute', now(), NULL, now() - interval '1 minute', 'refused', '', '' FROM sends WHERE push_id = $1`, counted.ID)
	b.sentAgo(t, "anna", 90*time.Second)
	b.InStatus(t, "clara", push.Sending)
	far := b.Booked(t, "dora", 48*time.Hour)
	b.Exec(t, `UPDATE live SET phase = 6, token = gen_random_uuid(), started_at = now() - interval '20 minutes', attempts = 1, next_at = now() - interval '10 minutes' WHERE push_id = $1`, far.ID)
	between := b.sentAgo(t, "anna", 50*time.Hour)
	b.Exec(t, `UPDATE pushes SET attempts = 2 WHERE id = $1`, between.ID) // it is closed all the same
	want := sortedFindings(slices.DeleteFunc(b.auditInChunks(t, storetest.PerMinute, 0), func(f audit.Finding) bool { return f.Push == between.ID }))
	for _, recipients := range []int{1, 1000} {
		b.forgetAudits(t)
		b.Exec(t, `INSERT INTO audited (slice, closed, looked_at)
			SELECT h, h BETWEEN now() - interval '99 hours' AND now() - interval '26 hours', now() - interval '99 hours'
			FROM generate_series(date_trunc('hour', now()) - interval '101 hours', now(), '1 hour') h`)
		got := sortedFindings(storetest.FinishAudit(t, b.beginPlan(t, booking.AuditPlan{Policy: storetest.PerMinute, Back: 24 * time.Hour, Ahead: 24 * time.Hour}, recipients)))
		if !slices.Equal(got, want) || len(got) < 6 {
			t.Errorf("chunks of %d: missing %q; too many %q; %d", recipients, without(want, got), without(got, want), len(got))
		}
	}
}

// TestPass_Gap checks that pushes that were due while no worker ran for days are audited when one is back.
func TestPass_Gap(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.pass(t, 10)
	b.Exec(t, `INSERT INTO audited (slice, closed, looked_at) VALUES (date_trunc('hour', now()) - interval '100 hours', true, now() - interval '99 hours')`)
	p := b.sentAgo(t, "anna", 60*time.Hour)
	b.Exec(t, `UPDATE pushes SET attempts = 2 WHERE id = $1`, p.ID)
	if found, _ := b.pass(t, 10); !only(found, p) {
		t.Errorf("behind a gap: %+v", found)
	}
	if found, _ := b.pass(t, 10); len(found) != 0 {
		t.Errorf("found again beyond a day: %+v", found)
	}
}

// TestPass_Resume checks that a pass resumes where it was left, with its findings, and reads each row once.
func TestPass_Resume(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	want := map[uuid.UUID]int{}
	for i := range 30 {
		p := b.Booked(t, fmt.Sprint("anna ", i), time.Duration(i)*40*time.Minute+time.Hour)
		b.Exec(t, `UPDATE pushes SET next_at = send_at - interval '1 second' WHERE id = $1`, p.ID)
		want[p.ID] = 1
	}
	plan := booking.AuditPlan{Policy: storetest.PerMinute, Every: time.Hour, Back: time.Hour, Ahead: 24 * time.Hour}
	got, passes, before := map[uuid.UUID]int{}, 0, ""
	var p *audit.Pass
	for over := false; !over; passes++ {
		worker := uuid.New()
		var err error
		if p, err = b.BeginAudit(t.Context(), worker, plan); err != nil || p == nil {
			t.Fatal(p, err)
		}
		if other, err := b.BeginAudit(t.Context(), uuid.New(), plan); err != nil || other != nil {
			t.Fatalf("another worker audits beside it: %v, %v", other, err)
		}
		b.cut(t, p, 4)
		if _, own, err := p.Next(t.Context(), func(f audit.Finding) { got[f.Push]++ }); err != nil || !own {
			t.Fatal(own, err)
		}
		if now := storetest.Ask[string](t, b.DB, `SELECT coalesce((state->'Walk')::text, '') FROM audit_pass`); now == before {
			t.Fatalf("it does not move: %s", now)
		} else {
			before = now
		}
		over = p.Over()
		b.Exec(t, `UPDATE audit_pass SET owned_until = now()`) // as if its worker had been killed, and its lease had expired
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || passes < 10 {
		t.Errorf("%d parts found %v", passes, got)
	}
	last, err := b.LastAudit(t.Context())
	if err != nil || last == nil || last.Found["early"].Violations != 30 || len(last.Found["early"].Pushes) != 10 || last.Ended.Before(last.Began) {
		t.Errorf("%+v, %v", last, err)
	}
	if p, err := b.BeginAudit(t.Context(), uuid.New(), plan); p != nil || err != nil {
		t.Errorf("the next pass begins at once: %v, %v", p, err)
	}
}

// TestPass_Lost checks that a worker that was delayed while another one took the pass changes nothing.
func TestPass_Lost(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	plan := booking.AuditPlan{Policy: storetest.PerMinute, Back: time.Hour, Ahead: 24 * time.Hour}
	slow, err := b.BeginAudit(t.Context(), uuid.New(), plan)
	if err != nil || slow == nil {
		t.Fatal(slow, err)
	}
	b.Exec(t, `UPDATE audit_pass SET owned_until = now()`)
	p, err := b.BeginAudit(t.Context(), uuid.New(), plan)
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	if _, own, err := slow.Next(t.Context(), nil); own || err != nil {
		t.Errorf("it has the pass: %v, %v", own, err)
	}
	if found := storetest.FinishAudit(t, p); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// forgeries are the statements that corrupt random pushes.
var forgeries = []string{
	`UPDATE pushes SET send_at = send_at + interval '1 minute', next_at = next_at + interval '1 minute' WHERE id = $1`,
	`UPDATE pushes SET attempts = attempts + 1 WHERE id = $1`,
	`UPDATE pushes SET updated_at = created_at - interval '1 second' WHERE id = $1`,
	`UPDATE pushes SET recipient = recipient || 'x' WHERE id = $1`,
	`UPDATE pushes SET recipient_key = recipient_key + 1 WHERE id = $1`,
	`UPDATE pushes SET possibly_delivered = NOT possibly_delivered WHERE id = $1`,
	`UPDATE pushes SET tenant_id = gen_random_uuid() WHERE id = $1`,
	`UPDATE sends SET started_at = started_at + interval '70 seconds', ended_at = ended_at + interval '70 seconds' WHERE push_id = $1`,
	`UPDATE sends SET ended_at = ended_at + interval '50 minutes' WHERE push_id = $1`,
	`UPDATE sends SET outcome = 'refused', handed_at = NULL WHERE push_id = $1`,
	`UPDATE sends SET push_id = gen_random_uuid() WHERE push_id = $1`,
	`DELETE FROM sends WHERE push_id = $1`,
	`DELETE FROM live WHERE push_id = $1`,
	`UPDATE live SET next_at = now() - interval '10 minutes' WHERE push_id = $1`,
	`UPDATE live SET phase = 6, token = gen_random_uuid(), started_at = now() - interval '20 minutes', attempts = attempts + 1, next_at = now() - interval '1 minute' WHERE push_id = $1`,
	`UPDATE pushes SET idempotency_id = '0b0c9c36-4b1d-4e3c-8a30-000000000001', idempotency_hash = decode(md5(id::text), 'hex') WHERE id = $1`,
}

// TestAuditChunks_AsWhole checks on random data with random faults that chunks of any size find the same as one chunk
// of everything.
func TestAuditChunks_AsWhole(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			b := setupAlone(t)
			r := rand.New(rand.NewPCG(seed, 0))
			// Few recipients have pushes from three hours back to two ahead, many of them too close to each other.
			b.Exec(t, `SELECT setseed($1)`, float64(seed)/10)
			b.Exec(t, `
				WITH n AS MATERIALIZED (
					SELECT gen_random_uuid() AS id, 'r' || (random() * 12)::int AS recipient, date_trunc('second', now() - interval '3 hours' + random() * interval '5 hours') AS at,
						(random() * 5)::int AS kind FROM generate_series(1, 250)
				)
				INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at,
					status, freed, attempts, last_error, created_at, updated_at)
				SELECT id, $1, ('x' || encode(substr(sha256(uuid_send($1) || convert_to(recipient, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint, recipient, 'log', '{}', at, at, at, at + interval '1 day',
					CASE WHEN at > now() THEN 'scheduled' WHEN kind = 0 THEN 'canceled' WHEN kind = 1 THEN 'failed' ELSE 'sent' END, kind < 2 AND at <= now(),
					CASE WHEN at > now() OR kind = 0 THEN 0 ELSE 1 END, CASE WHEN kind = 1 THEN 'bad' ELSE '' END, at - interval '1 hour', CASE WHEN at > now() THEN at - interval '1 hour' ELSE at + interval '1 minute' END
				FROM n`, b.TenantID)
			b.Exec(t, `
				INSERT INTO sends SELECT id, 1, tenant_id, recipient_key, recipient, channel, send_at, send_at + interval '1 minute', NULL, send_at + interval '3 seconds',
					CASE WHEN status = 'failed' THEN 'refused' ELSE 'delivered' END, '', '' FROM pushes WHERE attempts = 1`)
			for range 25 {
				id := storetest.Ask[uuid.UUID](t, b.DB, `SELECT id FROM pushes ORDER BY id OFFSET $1 LIMIT 1`, r.IntN(250))
				b.Exec(t, strings.ReplaceAll(forgeries[r.IntN(len(forgeries))], "$1", "'"+id.String()+"'::uuid"))
			}
			want := sortedFindings(b.auditInChunks(t, storetest.PerMinute, 1000))
			if len(want) < 20 {
				t.Fatal(len(want))
			}
			for _, recipients := range []int{1, 2, 7, 1000, 0} {
				b.forgetAudits(t)
				p := b.beginPlan(t, booking.AuditPlan{Policy: storetest.PerMinute, Back: 5 * time.Hour, Ahead: 24 * time.Hour}, recipients)
				got := sortedFindings(storetest.FinishAudit(t, p))
				if !slices.Equal(got, want) {
					t.Errorf("chunks of %d: missing %q; too many %q", recipients, without(want, got), without(got, want))
				}
			}
		})
	}
}

// sortedFindings returns findings as sorted lines.
func sortedFindings(all []audit.Finding) []string {
	lines := make([]string, len(all))
	for i, f := range all {
		lines[i] = fmt.Sprintf("%+v", f)
	}
	slices.SortFunc(lines, cmp.Compare)
	return lines
}

// without returns the elements of a that are not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}
