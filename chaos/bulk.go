package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/testenv"
)

// bulkName is the first part of the names of categories whose pushes a bulk change cancels or moves, and of their recipients. Nothing
// else changes these pushes.
const bulkName = "bulk-"

// bulkSort is a bulk change and its pushes: a number of recipients with a number of pushes each, two seconds apart.
type bulkSort struct {
	name             string
	recipients, each int
	change           func(from, to time.Time) object
}

var bulkSorts = []bulkSort{
	{"canceled", 70, 1, func(_, _ time.Time) object { return object{"action": "cancel"} }}, // more than a step
	{"shifted", 4, 3, func(from, to time.Time) object { return object{"action": "move", "shift": to.Sub(from).String()} }},
	{"gathered", 4, 2, func(_, to time.Time) object { // there is place for one of the two
		return object{"action": "move", "send_at": to.UTC().Format(time.RFC3339)}
	}},
}

// askBulk books pushes of a category from a time on, and requests a bulk change of them; a move brings them to another
// time. It returns the id; empty: there is none.
func (c *caller) askBulk(ctx context.Context, s bulkSort, category string, from, to time.Time) (id string) {
	var (
		wanted []op
		bodies []object
	)
	for r := range s.recipients {
		for i := range s.each {
			o := op{Recipient: fmt.Sprint(category, "-", r), Channel: "push", Category: category, At: from.Add(time.Duration(2*i) * time.Second).UTC()}
			body := pushBody(o.Recipient, o.Channel, o.At)
			body["category"] = category
			wanted, bodies = append(wanted, o), append(bodies, body)
		}
	}
	c.submitBatch(ctx, category, false, wanted, bodies)
	change := s.change(from, to)
	change["filter"] = object{"category": category}
	a, _ := c.insist(ctx, "POST", "/v1/bulk-changes", category, change)
	return a.body.ID
}

// startBulks asks for a bulk change of each sort. What they move is then due in seconds.
func (b *bundle) startBulks() {
	c, now := b.newCaller(), time.Now().Truncate(time.Second)
	for _, s := range bulkSorts {
		c.askBulk(b.Context(), s, bulkName+s.name, now.Add(time.Hour), now.Add(20*time.Second))
	}
}

// bulkWork asks for a bulk change of pushes that are hours away, and waits a while for its end.
func (b *bundle) bulkWork(ctx context.Context, c *caller, rng *rand.Rand, _ int) {
	now, s := time.Now().Truncate(time.Second), bulkSorts[rng.IntN(len(bulkSorts))]
	id := c.askBulk(ctx, s, fmt.Sprintf("%s%s-%x", bulkName, s.name, rng.Uint64()), now.Add(3*time.Hour), now.Add(4*time.Hour))
	for deadline := time.Now().Add(20 * time.Second); id != "" && time.Now().Before(deadline); {
		if a, _ := c.insist(ctx, "GET", "/v1/bulk-changes/"+id, "", nil); a.body.Status != "running" {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// endBulks waits until all bulk changes have ended, see await.
func (b *bundle) endBulks(timeout time.Duration) {
	b.await(timeout, `SELECT count(*) FROM bulk_changes WHERE ended_at IS NULL`)
}

// settledBulk is a bulk change in Postgres, with its numbers.
type settledBulk struct {
	ID, Category, Action, Status string
	Found, Changed, Refused      int
}

// bulkLine is a push in the list of a bulk change, with its send time then and its new one. Told is the number of its
// cancels and moves in the audit log.
type bulkLine struct {
	Change, Push, Outcome string
	Was, To               time.Time
	Requested             *time.Time // the send time that was asked for last; nil: there is no such push
	Told                  int
}

// readBulks reads what bulk changes have done.
func (f *facts) readBulks(b *bundle, conn *pgx.Conn) {
	rows, _ := conn.Query(b.Context(), `SELECT id::text, category, action, status, found::int, changed::int,
		(SELECT coalesce(sum(value::int), 0)::int FROM json_each_text(refused)) FROM bulk_changes`)
	var err error
	f.bulks, err = pgx.CollectRows(rows, pgx.RowToStructByPos[settledBulk])
	testenv.Check(b, err)
	rows, _ = conn.Query(b.Context(), `
		SELECT l.change_id::text, l.push_id::text, l.outcome, l.send_at, coalesce(c.send_at, l.send_at + c.shift_s * interval '1 second'), p.requested_send_at,
			(SELECT count(*)::int FROM audit_log a WHERE a.target = l.push_id::text AND a.action IN ('push.cancel', 'push.move'))
		FROM bulk_change_pushes l JOIN bulk_changes c ON c.id = l.change_id LEFT JOIN pushes p ON p.id = l.push_id`)
	f.bulkLines, err = pgx.CollectRows(rows, pgx.RowToStructByPos[bulkLine])
	testenv.Check(b, err)
}

// bulksHold checks that every bulk change ends, has listed all matching pushes, has canceled or moved once each push
// that it counts as changed, and has left the others unchanged; and that its counts add up.
func (j *findings) bulksHold() {
	lines := map[string][]bulkLine{}
	for _, l := range j.facts.bulkLines {
		lines[l.Change] = append(lines[l.Change], l)
	}
	for _, c := range j.facts.bulks {
		if c.Status != "done" {
			j.broken("bulk", "the bulk change of %s is still %s", c.Category, c.Status)
		}
		listed, changed, refused := map[string]bool{}, 0, 0
		for _, l := range lines[c.ID] {
			listed[l.Push] = true
			if j.bulkLineHolds(c, l); l.Outcome == "changed" {
				changed++
			} else {
				refused++
			}
		}
		for _, o := range j.facts.ops {
			if o.Kind == submitted && o.Status == 201 && o.Category == c.Category && !listed[o.ID] {
				j.broken("bulk", "push %s of %s fits the bulk change of %s, which has not found it", o.ID, o.Recipient, c.Category)
			}
		}
		if got, want := fmt.Sprint(c.Found, c.Changed, c.Refused), fmt.Sprint(len(listed), changed, refused); got != want {
			j.broken("bulk", "the numbers of the bulk change of %s are %s, and its pushes make %s", c.Category, got, want)
		}
	}
}

// bulkLineHolds compares the outcome of a push in a bulk change with the push.
func (j *findings) bulkLineHolds(c settledBulk, l bulkLine) {
	r := j.facts.rows[l.Push]
	want, times := l.Was, 0
	if l.Outcome == "changed" {
		if times = 1; c.Action == "move" {
			want = l.To
		}
	}
	switch isCanceled := c.Action == "cancel" && l.Outcome == "changed"; {
	case l.Outcome == "" || l.Outcome == "internal":
		j.broken("bulk", "push %s of the bulk change of %s was not decided: %q", l.Push, c.Category, l.Outcome)
	case l.Requested == nil:
		j.broken("bulk", "push %s of the bulk change of %s is not in Postgres", l.Push, c.Category)
	case (r.Status == "canceled") != isCanceled || !l.Requested.Equal(want):
		j.broken("bulk", "push %s of the bulk change of %s is %s, asked for at %s; it was to be sent at %s, and became %s", l.Push, c.Category, r.Status, stamp(*l.Requested), stamp(want), l.Outcome)
	case l.Told != times:
		j.broken("bulk", "push %s of the bulk change of %s, which became %s, was changed %d times", l.Push, c.Category, l.Outcome, l.Told)
	}
}
