package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sendquota/sendquota/internal/testenv"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// clean are the facts of four pushes of anna, two seconds apart: one sent at
// once, one after an attempt of unknown outcome, one canceled, one failed.
func clean() *findings {
	at := func(n int) time.Time { return noon.Add(time.Duration(n) * 2 * time.Second) }
	f := &facts{rows: map[string]row{}, sends: map[string][]send{}}
	for n, status := range []string{"sent", "sent", "canceled", "failed"} {
		id := fmt.Sprint("p", n)
		f.rows[id] = row{ID: id, Recipient: "anna", Channel: "push", Status: status, SendAt: at(n)}
		f.ops = append(f.ops, op{Kind: submitted, Recipient: "anna", ID: id, At: at(n), Key: "k" + id, Status: 201})
	}
	failed := f.rows["p3"]
	failed.LastError = "refused"
	f.rows["p3"] = failed
	f.ops = append(f.ops, op{Kind: canceled, Recipient: "anna", ID: "p2", Ended: noon, Status: 200})
	attempt := func(id string, n int, outcome string, start time.Time, taken bool) {
		end := start.Add(time.Millisecond)
		f.sends[id] = append(f.sends[id], send{Push: id, Outcome: outcome, Attempt: n, Started: start, Ended: &end, LeaseUntil: start.Add(time.Second)})
		f.arrivals = append(f.arrivals, testenv.Arrival{Push: id, Key: id, Recipient: "anna", Attempt: n, At: start, Taken: taken})
	}
	attempt("p0", 1, "delivered", at(0), true)
	attempt("p1", 1, "unknown", at(1), true)
	attempt("p1", 2, "delivered", at(2), true)
	attempt("p3", 1, "refused", at(3), false)
	return &findings{b: &bundle{config: config{rules: []rule{{1, 2 * time.Second}}}}, facts: f}
}

// recurring adds two occurrences of a schedule to the facts, and then spoils them.
func recurring(spoil func(*facts)) func(*facts) {
	return func(f *facts) {
		f.schedules = []settledSchedule{{ID: "s", Recipient: "recurring", Due: 2}}
		for n := range 2 {
			id, at := fmt.Sprint("s", n), noon.Add(time.Duration(n)*time.Minute)
			f.rows[id] = row{ID: id, Recipient: "recurring", Channel: "push", Status: "expired", LastError: "it expired", SendAt: at}
			f.recurs = append(f.recurs, recurs{Schedule: "s", Outcome: "submitted", Push: id, At: at})
		}
		spoil(f)
	}
}

// running adds a campaign with two recipients to the facts, one sent and one refused, and then corrupts them.
func running(spoil func(*facts)) func(*facts) {
	return func(f *facts) {
		f.campaigns = []settledCampaign{{ID: "c", Name: pausedOnce, Status: "finished", Audience: 2, Booked: 1, Refused: 1, Sent: 1}}
		f.lines = []campaignLine{{"c", "anna", "booked", "p0"}, {"c", "bert", "refused", ""}}
		spoil(f)
	}
}

// bulky adds a bulk change to the facts that has moved a push and was refused another one, and then spoils them.
func bulky(spoil func(*facts)) func(*facts) {
	return func(f *facts) {
		f.bulks = []settledBulk{{"b", "bulk", "move", "done", 2, 1, 1}}
		was, to := time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
		for i, at := range []time.Time{to, was} {
			id := fmt.Sprint("b", i)
			f.rows[id] = row{ID: id, Recipient: id, Category: "bulk", Status: "scheduled", SendAt: at}
			f.ops = append(f.ops, op{Kind: submitted, Recipient: id, ID: id, Category: "bulk", At: was, Key: id, Status: 201})
			f.bulkLines = append(f.bulkLines, bulkLine{"b", id, []string{"changed", "quota-exceeded"}[i], was, to, &at, 1 - i})
		}
		spoil(f)
	}
}

// upheld adds partitions to the facts: one was dropped rightly, one as old is still needed, and one is current. It then
// corrupts them.
func upheld(spoil func(*findings)) func(*findings) {
	return func(j *findings) {
		now := time.Now()
		old, needed, present := partition("pushes", now.Add(-50*day)), partition("pushes", now.Add(-40*day)), partition("sends", now)
		j.b.upkeep = &upkeep{began: now, partitions: map[string]bool{old: true, needed: true, present: true}, needed: needed}
		j.facts.partitions = map[string]bool{needed: true, present: true}
		spoil(j)
	}
}

// TestCheck_Upkeep breaks the upkeep once in each way.
func TestCheck_Upkeep(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		name, want string
		spoil      func(*findings)
	}{
		{"nothing", "", func(*findings) {}},
		{"not dropped", "is old, and not dropped", func(j *findings) { j.facts.partitions[partition("pushes", now.Add(-50*day))] = true }},
		{"detached, and not dropped", "is old, and not dropped", func(j *findings) { j.facts.partitions[partition("pushes", now.Add(-50*day))] = false }},
		{"needed, and dropped", "is needed, and gone", func(j *findings) { delete(j.facts.partitions, j.b.upkeep.needed) }},
		{"needed, and detached", "is needed, and gone", func(j *findings) { j.facts.partitions[j.b.upkeep.needed] = false }},
		{"recent, and dropped", "is needed, and gone", func(j *findings) { delete(j.facts.partitions, partition("sends", now)) }},
		{"found by a worker", "audit: the workers have found 1", func(j *findings) { j.facts.noticed = 1 }},
		{"not in time", "upkeep: not all lanes", func(j *findings) { j.b.upkeep.late = []string{"not all lanes have an owner"} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := clean()
			upheld(c.spoil)(j)
			j.compare()
			if found := strings.Join(j.found, "\n"); c.want == "" && found != "" || !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// TestCheck_EachViolation breaks each guarantee once. The checks must find that, and
// nothing where nothing is wrong.
func TestCheck_EachViolation(t *testing.T) {
	edit := func(id string, change func(*row)) func(*facts) {
		return func(f *facts) { r := f.rows[id]; change(&r); f.rows[id] = r }
	}
	for _, c := range []struct {
		name, want string
		spoil      func(*facts)
	}{
		{"nothing", "", func(*facts) {}},
		{"accepted and gone", "I1: push p0", func(f *facts) { delete(f.rows, "p0") }},
		{"never ended", "is still scheduled", edit("p0", func(r *row) { r.Status = "scheduled" })},
		{"no reason", "without a reason", edit("p3", func(r *row) { r.LastError = "" })},
		{"nobody asked", "I5: push p9", func(f *facts) { f.rows["p9"] = row{ID: "p9", Recipient: "bert", Status: "sent"} }},
		{"nobody knows", "", func(f *facts) {
			f.rows["p9"] = row{ID: "p9", Recipient: "bert", Status: "scheduled", SendAt: time.Now().Add(time.Hour)}
			f.ops = append(f.ops, op{Kind: submitted, Recipient: "bert"})
		}},
		{"promised too close", "I2 promised: anna", edit("p1", func(r *row) { r.SendAt = r.SendAt.Add(-time.Second) })},
		{"sent too close", "I2 actual: anna", func(f *facts) { f.arrivals[1].At = f.arrivals[1].At.Add(-time.Second) }},
		{"a little late at the provider", "", func(f *facts) { f.arrivals[0].At = f.arrivals[0].At.Add(400 * time.Millisecond) }},
		{"one attempt twice", "reached the provider twice", func(f *facts) { f.arrivals = append(f.arrivals, f.arrivals[3]) }},
		{"another key", "bears the key", func(f *facts) { f.arrivals[0].Key = "other" }},
		{"not recorded", "is not recorded", func(f *facts) { f.arrivals[0].Attempt = 2 }},
		{"not taken", "the provider did not take it", func(f *facts) { f.arrivals[0].Taken = false }},
		{"taken, not refused", "recorded as refused", func(f *facts) { f.arrivals[3].Taken = true }},
		{"no end", "has no end", func(f *facts) { f.sends["p3"][0].Outcome = "" }},
		{"twice without an excuse", "was delivered 2 times", func(f *facts) { f.sends["p1"][0].Outcome = "delivered" }},
		{"a late answer is an excuse", "", func(f *facts) {
			s := &f.sends["p1"][0]
			s.Outcome, s.LeaseUntil = "delivered", *s.Ended
		}},
		{"twice, where once was asked for", "was delivered 2 times", edit("p1", func(r *row) { r.Channel = "once" })},
		{"after the cancel", "after its cancel was confirmed", func(f *facts) {
			f.arrivals = append(f.arrivals, testenv.Arrival{Push: "p2", Key: "p2", Recipient: "bert", Attempt: 1, At: noon.Add(time.Second)})
		}},
		{"before the cancel, unsaid", "did not say so", func(f *facts) {
			f.arrivals = append(f.arrivals, testenv.Arrival{Push: "p2", Key: "p2", Recipient: "bert", Attempt: 1, At: noon.Add(-time.Second), Taken: true})
		}},
		{"in a pause", "I10: attempt 1 of push p", func(f *facts) {
			f.paused = []pausedSpan{{from: noon.Add(-pauseTakes - time.Second), until: noon.Add(time.Minute)}}
		}},
		{"right after a pause, and after its end", "", func(f *facts) {
			f.paused = []pausedSpan{{from: noon.Add(5 * time.Second), until: noon.Add(time.Minute)}, {from: noon.Add(-time.Hour), until: noon}}
		}},
		{"to a suppressed address", "I12: attempt 2 of push p1", func(f *facts) { f.suppressed = []suppressed{{"anna", noon.Add(3 * time.Second)}} }},
		{"to an address before it was suppressed", "", func(f *facts) { f.suppressed = []suppressed{{"anna", noon.Add(time.Hour)}} }},
		{"through the operator's channel", "I11: push p1", edit("p1", func(r *row) { r.Channel = ownHidden })},
		{"through its own channel", "", func(f *facts) {
			edit("p1", func(r *row) { r.Channel = ownHidden })(f)
			for i := range f.arrivals {
				f.arrivals[i].Own = true
			}
		}},
		{"of a deleted channel", "I11: push p2", edit("p2", func(r *row) { r.Channel = ownDoomed })},
		{"an occurrence", "", recurring(func(*facts) {})},
		{"an occurrence that was missed", "", recurring(func(f *facts) {
			f.recurs[1].Push, f.recurs[1].Outcome, f.recurs[1].Reason = "", "skipped", "missed"
			delete(f.rows, "s1")
		})},
		{"an occurrence without an end", "was begun and never ended", recurring(func(f *facts) { f.recurs[1].Outcome = "" })},
		{"an occurrence without a reason", "without a reason", recurring(func(f *facts) { f.recurs[1].Outcome = "refused" })},
		{"an occurrence without a record", "I8: schedule s has happened 2 times, and has 1 records", recurring(func(f *facts) { f.recurs = f.recurs[:1]; delete(f.rows, "s1") })},
		{"an occurrence without its push", "push s1 of schedule s", recurring(func(f *facts) { delete(f.rows, "s1") })},
		{"an occurrence with two pushes", "I5: push s2", recurring(func(f *facts) { r := f.rows["s1"]; r.ID = "s2"; f.rows["s2"] = r })},
		{"a push of two occurrences", "belongs to two occurrences", recurring(func(f *facts) { f.recurs[1].Push = "s0" })},
		{"an occurrence ahead of its time", "I8: push s1", recurring(func(f *facts) { f.recurs[1].At = f.recurs[1].At.Add(time.Second) })},
		{"an occurrence that is not sent", "is still scheduled", recurring(func(f *facts) { r := f.rows["s1"]; r.Status = "scheduled"; f.rows["s1"] = r })},
		{"a campaign", "", running(func(*facts) {})},
		{"a campaign without an end", "I9: the campaign that is paused is still running", running(func(f *facts) { f.campaigns[0].Status = "running" })},
		{"nobody decided", "I9: bert was never decided", running(func(f *facts) { f.lines[1].Outcome = "" })},
		{"booked without a push", "I9: push p9 of anna is not in Postgres", running(func(f *facts) { f.lines[0].Push = "p9" })},
		{"booked as another's push", "or belongs to two recipients", running(func(f *facts) { f.lines[1].Outcome, f.lines[1].Push = "booked", "p0" })},
		{"a recipient lost", "I9: the numbers of the campaign that is paused", running(func(f *facts) { f.lines = f.lines[:1] })},
		{"numbers that do not add up", "I9: the numbers of the campaign that is paused", running(func(f *facts) { f.campaigns[0].Refused = 0 })},
		{"counted as another end", "I9: the numbers of the campaign that is paused", running(func(f *facts) { f.campaigns[0].Sent, f.campaigns[0].Failed = 0, 1 })},
		{"left alone, and not booked", "I9: of the campaign that is left alone, 1 of 2 were booked", running(func(f *facts) { f.campaigns[0].Name = leftAlone })},
		{"a bulk change", "", bulky(func(*facts) {})},
		{"a bulk change without an end", "bulk: the bulk change of bulk is still running", bulky(func(f *facts) { f.bulks[0].Status = "running" })},
		{"numbers of a bulk change that do not add up", "bulk: the numbers", bulky(func(f *facts) { f.bulks[0].Changed = 2 })},
		{"not found by its bulk change", "bulk: push b1 of b1 fits", bulky(func(f *facts) { f.bulkLines, f.bulks[0].Found, f.bulks[0].Refused = f.bulkLines[:1], 1, 0 })},
		{"not decided by its bulk change", "bulk: push b1 of the bulk change of bulk was not decided", bulky(func(f *facts) { f.bulkLines[1].Outcome = "" })},
		{"moved, and where it was", "bulk: push b0 of the bulk change of bulk is scheduled", bulky(func(f *facts) { f.bulkLines[0].Requested = &f.bulkLines[0].Was })},
		{"refused, and moved", "bulk: push b1 of the bulk change of bulk is scheduled", bulky(func(f *facts) { f.bulkLines[1].Requested = &f.bulkLines[1].To })},
		{"moved, and canceled", "bulk: push b0 of the bulk change of bulk is canceled", bulky(func(f *facts) { r := f.rows["b0"]; r.Status = "canceled"; f.rows["b0"] = r })},
		{"moved twice", "became changed, was changed 2 times", bulky(func(f *facts) { f.bulkLines[0].Told = 2 })},
		{"listed, and gone", "bulk: push b1 of the bulk change of bulk is not in Postgres", bulky(func(f *facts) { f.bulkLines[1].Requested = nil })},
		{"one key, two pushes", "I6: the key", func(f *facts) { f.ops[1].Key = f.ops[0].Key }},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := clean()
			c.spoil(j.facts)
			j.compare()
			if found := strings.Join(j.found, "\n"); c.want == "" && found != "" || !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// TestLinearizable: answers that could have been given in some order, and some
// that could not.
func TestLinearizable(t *testing.T) {
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	do := func(kind, id string, place, began, ended, status int) op {
		problem := ""
		if status == 409 {
			problem = "quota-exceeded"
		}
		return op{Kind: kind, ID: id, Recipient: "far-1", At: at(place), Began: at(began), Ended: at(ended), Status: status, Problem: problem}
	}
	for _, c := range []struct {
		name string
		want porcupine.CheckResult
		ops  []op
	}{
		{"one place, one winner", porcupine.Ok, []op{do(submitted, "a", 0, 1, 5, 201), do(submitted, "", 1, 2, 4, 409)}},
		{"two winners", porcupine.Illegal, []op{do(submitted, "a", 0, 1, 5, 201), do(submitted, "b", 1, 2, 4, 201)}},
		{"refused without a reason", porcupine.Illegal, []op{do(submitted, "a", 0, 1, 2, 201), do(submitted, "", 2, 3, 4, 409)}},
		{"freed by a cancel", porcupine.Ok, []op{do(submitted, "a", 0, 1, 2, 201), do(canceled, "a", 0, 3, 5, 200), do(submitted, "b", 0, 4, 6, 201)}},
		{"refused after the cancel", porcupine.Illegal, []op{do(submitted, "a", 0, 1, 2, 201), do(canceled, "a", 0, 3, 4, 200), do(submitted, "", 0, 5, 6, 409)}},
		{"moved away", porcupine.Ok, []op{do(submitted, "a", 0, 1, 2, 201), do(moved, "a", 9, 3, 4, 200), do(submitted, "b", 0, 5, 6, 201)}},
		{"moved onto another", porcupine.Illegal, []op{do(submitted, "a", 0, 1, 2, 201), do(submitted, "b", 5, 1, 2, 201), do(moved, "a", 4, 3, 4, 200)}},
		{"perhaps booked, so refused", porcupine.Ok, []op{do(submitted, "", 0, 1, 2, 0), do(submitted, "", 1, 5, 6, 409)}},
		{"perhaps not booked, so accepted", porcupine.Ok, []op{do(submitted, "", 0, 1, 2, 0), do(submitted, "b", 1, 5, 6, 201)}},
		{"both at once", porcupine.Illegal, []op{do(submitted, "", 0, 1, 2, 0), do(submitted, "", 1, 5, 6, 409), do(submitted, "b", 1, 7, 8, 201)}},
		{"turned away, so nothing is freed", porcupine.Ok, []op{do(submitted, "a", 0, 1, 2, 201), do(canceled, "a", 0, 3, 4, 429), do(submitted, "", 1, 5, 6, 409)}},
		{"turned away, and freed", porcupine.Illegal, []op{do(submitted, "a", 0, 1, 2, 201), do(canceled, "a", 0, 3, 4, 429), do(submitted, "b", 1, 5, 6, 201)}},
		{"an answer that does not exist", porcupine.Illegal, []op{do(canceled, "z", 0, 1, 2, 200)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			slices.Reverse(c.ops)
			if n, got := linearizable(c.ops, []rule{{1, 2 * time.Second}}); got != c.want || n != len(c.ops) {
				t.Errorf("%s after %d operations, want %s", got, n, c.want)
			}
		})
	}
}

// TestProvider_AllBehaviours: the provider behaves as the name of a recipient says at
// the first attempt, and badly only where it is to.
func TestProvider_AllBehaviours(t *testing.T) {
	well, badly := simulator{mode: "well"}, simulator{mode: "badly", seed: "1"}
	met := map[behaviour]int{}
	for i, m := range behaviours {
		name := fmt.Sprintf("%d-x", i)
		if got := well.behaviour(name, "p", 1); got != m {
			t.Errorf("%s meets %v, want %v", name, got, m)
		}
		if got := well.behaviour(name, "p", 2); got != behaviours[0] {
			t.Errorf("%s meets %v at the second attempt", name, got)
		}
	}
	for i := range 2000 {
		met[badly.behaviour("anna", fmt.Sprint(i), 1)]++
	}
	for _, m := range behaviours {
		if met[m] == 0 {
			t.Errorf("no push meets %v", m)
		}
	}
}
