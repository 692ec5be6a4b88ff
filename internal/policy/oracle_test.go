package policy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/policy/policytest"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/testenv"
)

const (
	grain  = policytest.Grain
	span   = policytest.Span
	around = policytest.Around
)

func scenarios() *rapid.Generator[*policytest.Scenario] {
	return rapid.Custom(func(t *rapid.T) *policytest.Scenario {
		s := &policytest.Scenario{World: policytest.Worlds().Draw(t, "world")}
		s.Doc, s.Person = s.Documents(0).Draw(t, "document"), s.People().Draw(t, "person")
		legal := rapid.Bool().Draw(t, "legal")
		for i, at := range rapid.SliceOfN(s.Moments(), 0, 12).Draw(t, "times") {
			s.Kind = policytest.Kinds().Draw(t, "kind of booking")
			if !legal || s.Free(at) {
				b := quota.Booking{ID: uuid.UUID{15: byte(i + 1)}, At: at, Kind: s.Kind}
				s.Bookings = quota.NewTimeline(s.Bookings).Insert(b).Bookings()
			}
		}
		s.Kind = policytest.Kinds().Draw(t, "kind")
		return s
	})
}

// drawn draws a scenario with a valid document.
func drawn(t *rapid.T) (*policytest.Scenario, *policy.Terms, quota.Timeline) {
	s := scenarios().Draw(t, "scenario")
	terms, err := s.Doc.Compile(policytest.Channels)
	if err != nil {
		if !strings.Contains(err.Error(), "no minute of a week") {
			t.Fatalf("%v: %v", s, err)
		}
		t.Skip("always quiet")
	}
	return s, terms, quota.NewTimeline(s.Bookings)
}

func names(violations []quota.Violation) []string {
	var all []string
	for _, v := range violations {
		all = append(all, v.Rule.Name)
	}
	return all
}

// TestTerms_Oracle asks what forbids a push, and how full each rule is, until it has seen enough of each kind.
func TestTerms_Oracle(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	kinds := []string{"usage", "quiet", "0 in the way", "1 in the way", "2 in the way"}
	rare := func(kind string) bool { return seen[kind] < 20 }
	testenv.Enough(func() bool { return !slices.ContainsFunc(kinds, rare) }, func() {
		rapid.Check(t, func(t *rapid.T) { asksTerms(t, seen) })
	})
	t.Logf("%v", seen)
	for _, kind := range kinds {
		if rare(kind) {
			t.Errorf("%s: only %d: %v", kind, seen[kind], slices.Sorted(maps.Keys(seen)))
		}
	}
}

// asksTerms asks about a scenario at some moments, and counts the kinds of answers.
func asksTerms(t *rapid.T, seen map[string]int) {
	s, terms, line := drawn(t)
	p, shadow := terms.For(s.Person, s.Kind), terms.Shadow(s.Person, s.Kind)
	for _, at := range rapid.SliceOfN(s.Moments(), 20, 60).Draw(t, "asked") {
		want := s.InTheWay(at, false)
		if got := names(p.Violations(line, at)); !slices.Equal(got, want) || p.Allows(line, at) != (len(want) == 0) {
			t.Fatalf("%v: of %v at %s: %v, the oracle says %v", s, s.Kind, at.In(s.Zone), got, want)
		}
		if got, want := names(shadow.Violations(line, at)), s.InTheWay(at, true); !slices.Equal(got, want) {
			t.Fatalf("%v: shadows of %v at %s: %v, the oracle says %v", s, s.Kind, at.In(s.Zone), got, want)
		}
		for _, u := range p.Usage(line, at) {
			r := s.Doc.Rules[slices.IndexFunc(s.Doc.Rules, func(r policy.Rule) bool { return r.Name == u.Rule.Name })]
			if remaining, used := s.Remaining(r, at); u.Remaining != remaining || u.Used != used {
				t.Fatalf("%v: of %v at %s: %+v, the oracle says %d and %d", s, s.Kind, at.In(s.Zone), u, used, remaining)
			}
			seen["usage"]++
		}
		defers, rejects := false, false
		for _, q := range s.Doc.QuietHours {
			if slices.Contains(want, q.Name) {
				defers, rejects = defers || q.Action == "defer", rejects || q.Action != "defer"
				seen["quiet"]++
			}
		}
		if p.Defers(at) != (defers && !rejects) {
			t.Fatalf("%v: of %v at %s: defers %v", s, s.Kind, at.In(s.Zone), p.Defers(at))
		}
		seen[fmt.Sprintf("%d in the way", len(want))]++
	}
}

// TestTerms_BlockedOracle compares every quarter of the days.
func TestTerms_BlockedOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, terms, line := drawn(t)
		blocked := terms.For(s.Person, s.Kind).Blocked(line, s.Begin, s.Begin.Add(span))
		for at := s.Begin; at.Before(s.Begin.Add(span)); at = at.Add(grain) {
			var rules []string
			for _, i := range blocked {
				if i.Covers(at) && !slices.Contains(rules, i.Rule.Name) {
					rules = append(rules, i.Rule.Name)
				}
			}
			want := s.InTheWay(at, false)
			slices.Sort(rules)
			slices.Sort(want)
			if !slices.Equal(rules, want) {
				t.Fatalf("%v: of %v at %s: blocked by %v, the oracle says %v", s, s.Kind, at.In(s.Zone), rules, want)
			}
		}
	})
}

// TestTerms_FreeTimesOracle tries every quarter on the way to the free time that is found.
func TestTerms_FreeTimesOracle(t *testing.T) {
	t.Parallel()
	far := 0
	check := func(t *rapid.T) {
		s, terms, line := drawn(t)
		p := terms.For(s.Person, s.Kind)
		asked := s.Moments().Draw(t, "asked")
		next, ok := p.Next(line, asked, grain)
		for at := asked; at.Before(s.Begin.Add(span + around)); at = at.Add(grain) {
			if len(s.InTheWay(at, false)) == 0 {
				if !ok || !next.Equal(at) {
					t.Fatalf("%v: next of %v after %s is %s (%v), want %s", s, s.Kind, asked.In(s.Zone), next.In(s.Zone), ok, at.In(s.Zone))
				}
				break
			} else if ok && next.Equal(at) {
				t.Fatalf("%v: next of %v after %s is %s, which is not free", s, s.Kind, asked.In(s.Zone), next.In(s.Zone))
			}
		}
		if next.Sub(asked) > 24*time.Hour {
			far++
		}
		previous, ok := p.Previous(line, asked, grain)
		for at := asked; at.After(s.Begin.Add(-around)); at = at.Add(-grain) {
			if len(s.InTheWay(at, false)) == 0 {
				if !ok || !previous.Equal(at) {
					t.Fatalf("%v: previous of %v before %s is %s (%v), want %s", s, s.Kind, asked.In(s.Zone), previous.In(s.Zone), ok, at.In(s.Zone))
				}
				break
			} else if ok && previous.Equal(at) {
				t.Fatalf("%v: previous of %v before %s is %s, which is not free", s, s.Kind, asked.In(s.Zone), previous.In(s.Zone))
			}
		}
	}
	for tries := 0; tries == 0 || tries < 10 && far == 0; tries++ { // now and then a hundred draws have none
		rapid.Check(t, check)
	}
	if far == 0 {
		t.Error("no free time was further than a day: nothing was tested")
	}
}
