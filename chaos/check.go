package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sendquota/sendquota/internal/testenv"
)

// findings gathers the broken guarantees of a bundle.
type findings struct {
	b       *bundle
	facts   *facts
	found   []string
	ordered int // operations checked for linearizability
	checked int // answers that were given under a known policy
}

func (j *findings) broken(guarantee, format string, args ...any) {
	j.found = append(j.found, guarantee+": "+fmt.Sprintf(format, args...))
}

// check compares the facts when everything has settled, and asks the audit.
func (b *bundle) check() *findings {
	j := &findings{b: b, facts: b.facts()}
	j.compare()
	if o := b.Exec("sendquota", "audit"); o.Status != 0 {
		j.broken("audit", "%s%s", o.Out, o.Err)
	}
	if len(j.found) > 0 {
		testenv.Check(b, b.history.write(filepath.Join(b.Dir, "history.jsonl")))
	}
	return j
}

// compare compares the answers to callers, the rows of Postgres and the requests to the provider.
func (j *findings) compare() {
	j.nothingIsLost()
	j.nothingIsMadeUp()
	j.ordersHold()
	j.windowsHold()
	j.attemptsAreTrue()
	j.cancelsHold()
	j.keysHold()
	j.termsHold()
	j.occurrencesHold()
	j.campaignsHold()
	j.bulksHold()
	j.pausesHold()
	j.suppressionsHold()
	j.ownChannelsHold()
	j.upkeepHolds()
}

// nothingIsLost checks I1: every accepted push has ended, with a reason.
func (j *findings) nothingIsLost() {
	for _, o := range j.facts.ops {
		if o.Kind != submitted || o.Status != 201 {
			continue
		}
		r, ok := j.facts.rows[o.ID]
		switch far := r.SendAt.After(time.Now().Add(time.Minute)); {
		case !ok:
			j.broken("I1", "push %s of %s was accepted and is not in Postgres", o.ID, o.Recipient)
		case far && (r.Status == "scheduled" || r.Status == "canceled"):
		case r.Status == "scheduled" || r.Status == "sending":
			j.broken("I1", "push %s of %s, accepted for %s, is still %s", r.ID, r.Recipient, stamp(r.SendAt), r.Status)
		case r.Status == "expired" && !o.Brief:
			j.broken("I1", "push %s of %s, for %s, was forgotten until it expired at %s", r.ID, r.Recipient, stamp(r.SendAt), stamp(r.ExpiresAt))
		case (r.Status == "failed" || r.Status == "expired") && r.LastError == "":
			j.broken("I1", "push %s of %s is %s without a reason", r.ID, r.Recipient, r.Status)
		}
	}
}

// nothingIsMadeUp checks I5: every push in Postgres was accepted, or its caller got no answer, or it belongs to an
// occurrence or to a recipient of a campaign.
func (j *findings) nothingIsMadeUp() {
	known, unknown := map[string]bool{}, map[string]int{}
	for _, o := range j.facts.ops {
		switch {
		case o.Kind == submitted && o.Status == 201:
			known[o.ID] = true
		case !o.known():
			unknown[o.Recipient]++
		}
	}
	for _, r := range j.facts.recurs {
		known[r.Push] = true
	}
	for _, l := range j.facts.lines {
		known[l.Push] = true
	}
	for _, r := range j.facts.rows {
		if !known[r.ID] && unknown[r.Recipient] == 0 {
			j.broken("I5", "push %s of %s, for %s, is in Postgres, but was not accepted to any caller", r.ID, r.Recipient, stamp(r.SendAt))
		}
	}
}

// ordersHold checks I5 for the bookings of one recipient by several callers.
func (j *findings) ordersHold() {
	var result porcupine.CheckResult
	switch j.ordered, result = linearizable(j.facts.ops, j.b.rules); result {
	case porcupine.Illegal:
		j.broken("I5", "no order of the bookings explains the answers to their callers")
	case porcupine.Unknown:
		j.broken("I5", "whether an order of the bookings explains the answers was not decided within a minute")
	}
}

// lag is the part of a window that the provider's times may be late, because the machine is busy. The audit is strict,
// by Postgres' clock.
const lag = 4

// windowsHold checks I2 by brute force.
func (j *findings) windowsHold() {
	promised, actual := map[string][]time.Time{}, map[string][]time.Time{}
	for _, r := range j.facts.rows {
		if r.Status == "scheduled" || r.Status == "sending" || r.Status == "sent" {
			promised[r.Recipient] = append(promised[r.Recipient], r.SendAt)
		}
	}
	for _, a := range j.facts.arrivals {
		if a.Taken {
			actual[a.Recipient] = append(actual[a.Recipient], a.At)
		}
	}
	for _, r := range j.b.rules {
		j.window("I2 promised", promised, r.limit, r.window)
		j.window("I2 actual", actual, r.limit, r.window-r.window/lag)
	}
}

func (j *findings) window(what string, times map[string][]time.Time, limit int, window time.Duration) {
	for recipient, ts := range times {
		slices.SortFunc(ts, time.Time.Compare)
		for i := limit; i < len(ts); i++ {
			if d := ts[i].Sub(ts[i-limit]); d < window {
				j.broken(what, "%s has %d sends within %s, from %s to %s", recipient, limit+1, d, stamp(ts[i-limit]), stamp(ts[i]))
			}
		}
	}
}

// attemptsAreTrue checks I3: the attempts in Postgres are the ones that the provider saw.
func (j *findings) attemptsAreTrue() {
	type attempt struct {
		push   string
		number int
	}
	seen, taken := map[attempt]int{}, map[attempt]bool{}
	times := map[string]int{}
	for _, a := range j.facts.arrivals {
		at := attempt{a.Push, a.Attempt}
		if seen[at]++; seen[at] == 2 {
			j.broken("I3", "attempt %d of push %s reached the provider twice", a.Attempt, a.Push)
		}
		if a.Key != a.Push {
			j.broken("I3", "attempt %d of push %s bears the key %s", a.Attempt, a.Push, a.Key)
		}
		if len(j.facts.sends[a.Push]) < a.Attempt {
			j.broken("I3", "attempt %d of push %s reached the provider and is not recorded", a.Attempt, a.Push)
		}
		if a.Taken {
			taken[at] = true
			times[a.Push]++
		}
	}
	for id, sends := range j.facts.sends {
		excused := 1
		for _, s := range sends {
			at := attempt{id, s.Attempt}
			switch {
			case s.Outcome == "delivered" && !taken[at]:
				j.broken("I3", "attempt %d of push %s is recorded as delivered, and the provider did not take it", s.Attempt, id)
			case s.Outcome == "refused" && taken[at]:
				j.broken("I3", "attempt %d of push %s is recorded as refused, and the provider took it", s.Attempt, id)
			case s.Outcome == "":
				j.broken("I3", "attempt %d of push %s has no end", s.Attempt, id)
			}
			if s.Outcome == "unknown" || s.lost() {
				excused++
			}
		}
		if j.facts.rows[id].Channel == "once" {
			excused = 1
		}
		if times[id] > excused {
			j.broken("I3", "push %s was delivered %d times, and %d attempts had an unknown outcome", id, times[id], excused-1)
		}
		if j.facts.rows[id].Status == "sent" && times[id] == 0 {
			j.broken("I1", "push %s is sent, and the provider never took it", id)
		}
	}
}

// cancelsHold checks I4: after the answer nothing arrives, and the answer warns if a message may have arrived before.
func (j *findings) cancelsHold() {
	canceledAt, possibly := map[string]time.Time{}, map[string]bool{}
	for _, o := range j.facts.ops {
		if o.Kind == canceled && o.Status == 200 {
			canceledAt[o.ID], possibly[o.ID] = o.Ended, o.Possibly
		}
	}
	for _, a := range j.facts.arrivals {
		at, ok := canceledAt[a.Push]
		switch {
		case ok && a.At.After(at):
			j.broken("I4", "push %s reached the provider at %s, after its cancel was confirmed at %s", a.Push, stamp(a.At), stamp(at))
		case ok && a.Taken && !possibly[a.Push]:
			j.broken("I4", "push %s had been delivered when its cancel was confirmed, and the answer did not say so", a.Push)
		}
	}
}

// keysHold checks I6: one key, one push.
func (j *findings) keysHold() {
	ids := map[string]string{}
	for _, o := range j.facts.ops {
		if o.Kind != submitted || o.Key == "" || o.Batch || o.Status != 201 {
			continue
		}
		if first, ok := ids[o.Key]; ok && first != o.ID {
			j.broken("I6", "the key %s made the pushes %s and %s", o.Key, first, o.ID)
		}
		ids[o.Key] = o.ID
	}
}

func stamp(t time.Time) string { return t.UTC().Format("15:04:05.000") }
