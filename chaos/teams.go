package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// teamName is the first part of the names of recipients of a tenant that has rules of its own, which change in the storm.
const (
	teamName   = "team-"
	teamMost   = 10 // recipients
	teamTenant = "teams"
)

func isTeam(recipient string) bool { return strings.HasPrefix(recipient, teamName) }

// The categories of what they get: what a policy forbids at times, what people opt out of, and what is quiet in some zones.
const (
	flash = "flash"
	news  = "news"
	calm  = "calm"
)

// newsRule is the common rule of all policies for the category news.
var newsRule = rule{2, 15 * time.Second}

// era is a period when something certainly was in force, or certainly was not.
type era struct {
	from, until time.Time // until: zero while it lasts
	holds       bool
}

// eras records the eras of each thing that changes.
type eras struct {
	mu sync.Mutex
	of map[string][]era
	n  int // of the change
}

// change makes a change. While it runs, and after a failed one, the state is unknown.
func (e *eras) change(what string, holds bool, do func(n int) error) {
	e.mu.Lock()
	if of := e.of[what]; len(of) > 0 && of[len(of)-1].until.IsZero() {
		of[len(of)-1].until = time.Now()
	}
	e.n++
	n := e.n
	e.mu.Unlock()
	if do(n) != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of[what] = append(e.of[what], era{from: time.Now(), holds: holds})
}

// held reports whether something surely held, or surely did not, from one time to another.
func (e *eras) held(what string, from, until time.Time) (holds, certain bool) {
	for _, era := range e.of[what] {
		if !era.from.After(from) && (era.until.IsZero() || !era.until.Before(until)) {
			return era.holds, true
		}
	}
	return false, false
}

// count returns the number of eras.
func (e *eras) count() (n int) {
	for _, of := range e.of {
		n += len(of)
	}
	return n
}

// teams is the load on that tenant.
type teams struct {
	b       *bundle
	key     string
	changed eras
	quiet   object // hours around now, for everyone in UTC
}

// newTeams makes the tenant. Nothing is described or forbidden yet.
func (b *bundle) newTeams() *teams {
	t := &teams{b: b, key: b.Tenant(teamTenant), changed: eras{of: map[string][]era{}}}
	now := time.Now().UTC()
	t.quiet = object{
		"name": "quiet", "categories": []string{calm}, "zone": "recipient",
		"from": now.Add(-4 * time.Hour).Format("15:00"), "until": now.Add(4 * time.Hour).Format("15:00"),
	}
	t.setPolicy(context.Background(), false)
	for n := range teamMost {
		t.describe(context.Background(), n, false, n%2 == 0)
	}
	return t
}

// exec runs a statement that takes effect once, even if its answer is lost.
func (t *teams) exec(ctx context.Context, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, t.b.Database)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, sql, args...)
	return err
}

// setPolicy writes the next policy. All of them have the rules of the file, and one about news.
func (t *teams) setPolicy(ctx context.Context, forbidden bool) {
	limit := 1000
	if forbidden {
		limit = 0
	}
	rules := []object{
		{"name": "flash", "limit": limit, "window": "1h", "categories": []string{flash}},
		{"name": "news", "limit": newsRule.limit, "window": newsRule.window.String(), "categories": []string{news}},
		{"name": "month", "limit": 1000, "per": "month", "zone": "Australia/Lord_Howe"},
	}
	for i, r := range t.b.rules {
		rules = append(rules, object{"name": fmt.Sprint("rule-", i), "limit": r.limit, "window": r.window.String()})
	}
	document, _ := json.Marshal(object{"rules": rules, "quiet_hours": []object{t.quiet}})
	t.changed.change(flash, forbidden, func(n int) error {
		return t.exec(ctx, `
			WITH now AS (UPDATE tenants SET policy_version = $2::bigint WHERE name = $1 AND policy_version < $2::bigint RETURNING id)
			INSERT INTO policies (tenant_id, version, document) SELECT id, $2::bigint, $3::json FROM now`, teamTenant, n, document)
	})
}

// subject names what is known of a recipient.
func subject(what, recipient string) string { return what + " " + recipient }

// describe writes what is known of a recipient: whether it wants no news, and whether it lives where it is quiet now.
func (t *teams) describe(ctx context.Context, n int, optedOut, quiet bool) {
	who, zone, without := fmt.Sprint(teamName, n), "Pacific/Auckland", []string{}
	if quiet {
		zone = "UTC"
	}
	if optedOut {
		without = []string{news}
	}
	t.changed.change(subject(news, who), optedOut, func(int) (err error) {
		t.changed.change(subject(calm, who), quiet, func(n int) error {
			err = t.exec(ctx, `
				WITH now AS (UPDATE tenants SET described = true WHERE name = $1 RETURNING id)
				INSERT INTO recipients AS r (shard, tenant_id, recipient_key, recipient, time_zone, opt_out_categories, attributes)
				SELECT k & 255, id, k, $2::text, $3::text, $4::text[], jsonb_build_object('n', $5::bigint)
				FROM now CROSS JOIN LATERAL (SELECT ('x' || encode(substr(sha256(uuid_send(id) || convert_to($2::text, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint AS k) key
				ON CONFLICT (shard, recipient_key, tenant_id, recipient) DO UPDATE SET time_zone = EXCLUDED.time_zone, opt_out_categories = EXCLUDED.opt_out_categories,
					attributes = EXCLUDED.attributes, updated_at = clock_timestamp()
				WHERE (r.attributes->>'n')::bigint < $5`, teamTenant, who, zone, without, n)
			return err
		})
		return err
	})
}

// work changes something.
func (t *teams) work(ctx context.Context, rng *rand.Rand) {
	if rng.IntN(4) == 0 {
		t.setPolicy(ctx, rng.IntN(2) == 0)
	} else {
		t.describe(ctx, rng.IntN(teamMost), rng.IntN(2) == 0, rng.IntN(2) == 0)
	}
}

// submit submits something for one of the recipients.
func (t *teams) submit(ctx context.Context, c *caller, rng *rand.Rand, n int) {
	at := time.Now().Add(time.Duration(1+rng.IntN(4)) * time.Second).Truncate(time.Second)
	t.ask(ctx, c, fmt.Sprint(teamName, rng.IntN(teamMost)), []string{flash, news, calm}[rng.IntN(3)], fmt.Sprintf("%s%d-%x", teamName, n, rng.Uint64()), at)
}

// ask submits a push in a category.
func (t *teams) ask(ctx context.Context, c *caller, recipient, category, key string, at time.Time) {
	c.key = t.key
	o := op{Recipient: recipient, Channel: "push", Category: category, At: at.UTC(), Key: key, Brief: true}
	body := pushBody(o.Recipient, o.Channel, at)
	body["category"], body["expires_at"] = o.Category, at.Add(20*time.Second).UTC().Format(time.RFC3339)
	c.book(ctx, o, body)
}

// termsHold holds answers and attempts to what was surely in force meanwhile.
func (j *findings) termsHold() {
	if j.b.teams == nil {
		return
	}
	changed := &j.b.teams.changed
	what := func(category, recipient string) string {
		if category == flash {
			return flash
		}
		return subject(category, recipient)
	}
	problems := map[string][]string{flash: {"quota-exceeded"}, news: {"opted-out"}, calm: {"quiet-hours", "quota-exceeded"}}
	for _, o := range j.facts.ops {
		if !isTeam(o.Recipient) || !o.known() {
			continue
		}
		switch forbidden, certain := changed.held(what(o.Category, o.Recipient), o.Began, o.Ended); {
		case !certain:
		case forbidden && !slices.Contains(problems[o.Category], o.Problem):
			j.broken("terms", "a push (%s) of %s, asked for from %s to %s, was answered with %d %s, though it was forbidden all the time", o.Category, o.Recipient, stamp(o.Began), stamp(o.Ended), o.Status, o.Problem)
		case !forbidden && (o.Problem == "opted-out" || o.Problem == "quiet-hours"):
			j.broken("terms", "a push (%s) of %s, asked for from %s to %s, was refused: %s, though it was not all the time", o.Category, o.Recipient, stamp(o.Began), stamp(o.Ended), o.Problem)
		default:
			j.checked++
		}
	}
	promised, actual := map[string][]time.Time{}, map[string][]time.Time{}
	for id, sends := range j.facts.sends {
		r := j.facts.rows[id]
		if !isTeam(r.Recipient) {
			continue
		}
		for _, s := range sends {
			if forbidden, certain := changed.held(what(r.Category, r.Recipient), s.Started, s.Started); certain && forbidden {
				j.broken("terms", "attempt %d of push %s (%s) of %s began at %s, when it was forbidden", s.Attempt, id, r.Category, r.Recipient, stamp(s.Started))
			}
		}
	}
	for _, r := range j.facts.rows {
		if isTeam(r.Recipient) && r.Category == news && (r.Status == "scheduled" || r.Status == "sending" || r.Status == "sent") {
			promised[r.Recipient] = append(promised[r.Recipient], r.SendAt)
		}
	}
	for _, a := range j.facts.arrivals {
		if a.Taken && isTeam(a.Recipient) && j.facts.rows[a.Push].Category == news {
			actual[a.Recipient] = append(actual[a.Recipient], a.At)
		}
	}
	j.window("terms promised", promised, newsRule.limit, newsRule.window)
	j.window("terms actual", actual, newsRule.limit, newsRule.window-newsRule.window/lag)
}

// teamEvents counts what must have happened to the tenant with rules of its own.
func (l *lab) teamEvents(j *findings) {
	rare := l.rare()
	refused := func(problem string) int {
		return number(j.facts.ops, func(o op) bool { return isTeam(o.Recipient) && o.Problem == problem })
	}
	rare("policies and people changed", j.b.teams.changed.count()-2*teamMost-1)
	rare("answers given under a certainly known policy", j.checked)
	rare("submits refused for an opt-out", refused("opted-out"))
	rare("submits refused for quiet hours", refused("quiet-hours"))
	rare("pushes sent under rules of the tenant's own", number(slices.Collect(maps.Values(j.facts.rows)), func(r row) bool { return isTeam(r.Recipient) && r.Status == "sent" }))
	l.report.meet("pushes canceled at the gate for an opt-out", j.b.said(`"msg":"push canceled: its recipient has opted out"`))
}
