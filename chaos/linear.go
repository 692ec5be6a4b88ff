package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// linearizable reports whether the answers about bookings of recipients are consistent with some order of the
// operations, each taking effect at one instant between its begin and its end. The pushes are too far ahead to be sent.
// An operation with an unknown end may have happened at any time since its begin, or not at all.
func linearizable(ops []op, rules []rule) (checked int, result porcupine.CheckResult) {
	var history []porcupine.Operation
	for _, o := range ops {
		if !isFar(o.Recipient) {
			continue
		}
		end := o.Ended.UnixNano()
		if !o.known() {
			end = math.MaxInt64
		}
		history = append(history, porcupine.Operation{Input: o, Output: o, Call: o.Began.UnixNano(), Return: end})
	}
	return len(history), porcupine.CheckOperationsTimeout(calendarModel(rules).ToModel(), history, time.Minute)
}

// calendar is a recipient's bookings, sorted by time.
type calendar []place

type place struct {
	at time.Time
	id string
}

// calendarModel models the effect of each operation on one recipient's calendar.
func calendarModel(rules []rule) *porcupine.NondeterministicModel {
	return &porcupine.NondeterministicModel{
		Partition: byRecipient,
		Init:      func() []any { return []any{calendar{}} },
		Step: func(state, input, _ any) []any {
			return step(state.(calendar), input.(op), rules)
		},
		Equal:             func(a, b any) bool { return slices.Equal(a.(calendar), b.(calendar)) },
		DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
	}
}

func byRecipient(history []porcupine.Operation) [][]porcupine.Operation {
	parts := map[string][]porcupine.Operation{}
	for _, o := range history {
		name := o.Input.(op).Recipient
		parts[name] = append(parts[name], o)
	}
	return slices.Collect(maps.Values(parts))
}

// step returns the calendars that an operation may leave behind; none: its answer is impossible.
func step(c calendar, o op, rules []rule) []any {
	after, possible := c.apply(o, rules)
	switch {
	case !o.known() && possible:
		return []any{c, after}
	case !o.known():
		return []any{c}
	case o.Status == 429: // the tenant had too much under way
		return []any{c}
	case o.Status == 409 && o.Problem == "quota-exceeded" && !possible:
		return []any{c}
	case o.Status < 300 && possible:
		return []any{after}
	}
	return nil
}

// apply applies an operation, if it is possible.
func (c calendar) apply(o op, rules []rule) (calendar, bool) {
	known := slices.IndexFunc(c, func(p place) bool { return p.id == o.ID && o.ID != "" })
	rest := c
	if o.Kind != submitted {
		if known < 0 {
			return c, false
		}
		rest = slices.Delete(slices.Clone(c), known, known+1)
	}
	if o.Kind == canceled {
		return rest, true
	}
	next := append(slices.Clone(rest), place{o.At, o.ID})
	slices.SortFunc(next, func(a, b place) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.id, b.id)) })
	for _, r := range rules {
		for i := r.limit; i < len(next); i++ {
			if next[i].at.Sub(next[i-r.limit].at) < r.window {
				return c, false
			}
		}
	}
	return next, true
}
