package ratelimit

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/testenv"
)

// must demands a decision.
func must(t *testing.T) func(d Decision, err error) Decision {
	return func(d Decision, err error) Decision {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

// TestRefund gives back what was used, not more, and of each limit by itself; what was used and given back leaves
// nothing behind.
func TestRefund(t *testing.T) {
	t.Parallel()
	l, rdb := setupReal(t)
	rules := rulesOf("anna", variants()...)
	rules[4].Limit.Burst = 10 // of the leaky bucket
	remaining := func(d Decision) (all []int) {
		for _, r := range d.Results {
			all = append(all, r.Remaining)
		}
		return all
	}
	must(t)(l.Take(t.Context(), "o", 4, rules...))
	must(t)(l.Take(t.Context(), "o", 5, rules[0]))
	d := must(t)(l.Refund(t.Context(), "o", 3, rules...))
	if diff := cmp.Diff([]int{4, 9, 9, 9, 9, 9, 9}, remaining(d)); diff != "" || !d.Allowed || d.Results[0].RetryAfter != 0 {
		t.Errorf("%+v: %s", d, diff)
	}
	d = must(t)(l.Refund(t.Context(), "o", 5, rules...))
	if diff := cmp.Diff([]int{9, 10, 10, 10, 10, 10, 10}, remaining(d)); diff != "" {
		t.Error(diff)
	}
	if n := rdb.DBSize(t.Context()).Val(); n != 1 {
		t.Errorf("%d keys", n)
	}
	if d = must(t)(l.Refund(t.Context(), "o", 1_000_000, rules[0])); d.Allowed || d.Results[0].RetryAfter != Never || d.Results[0].Remaining != 10 {
		t.Errorf("%+v", d) // equals the answer to a peek
	}
	if left := dump(t, rdb); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	must(t)(l.Refund(t.Context(), "o", 0, rules...))
	if left := dump(t, rdb); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestReset forgets the limits that are named, and no others.
func TestReset(t *testing.T) {
	t.Parallel()
	l, rdb := setupReal(t)
	rules, others := rulesOf("anna", variants()...), rulesOf("bert", variants()...)
	must(t)(l.Take(t.Context(), "o", 1, rules...))
	must(t)(l.Take(t.Context(), "o", 1, others...))
	before := dump(t, rdb)
	for range 2 {
		d := must(t)(l.Reset(t.Context(), "o", 1, rules...))
		for i, r := range d.Results {
			if want := (Result{Allowed: true, Limit: rules[i].Limit.WithDefaults().capacity(), Remaining: rules[i].Limit.WithDefaults().capacity()}); r != want {
				t.Errorf("%s: %+v", rules[i].Limit.program().kind, r)
			}
		}
		if d.Results = nil; !d.Allowed {
			t.Errorf("%+v", d)
		}
	}
	if after := dump(t, rdb); len(after) != len(others) {
		t.Errorf("of %d keys %d are left", len(before), len(after))
	}
	if d := must(t)(l.Reset(t.Context(), "o", 0, others...)); !d.Allowed || rdb.DBSize(t.Context()).Val() != 0 {
		t.Errorf("without a cost: %+v", d)
	}
}

// TestRefund_SentOnce: where the reply is lost it may have been made, and is not made twice.
func TestRefund_SentOnce(t *testing.T) {
	t.Parallel()
	w, through := testenv.Proxy(t, testenv.OwnRedis(t).URL)
	l := New(client(t, through), Config{Config: redisscript.Config{Timeout: time.Minute, Cooldown: time.Nanosecond}})
	rule := Rule{Subject: "anna", Limit: Limit{Algorithm: SlidingLog, Limit: 9, Per: time.Hour}}
	must(t)(l.Take(t.Context(), "o", 7, rule))
	must(t)(l.Refund(t.Context(), "o", 1, rule)) // the script is known
	w.Lose(2, "*4\r\n:1\r\n:4\r\n", "*4\r\n:1\r\n:2\r\n")
	_, err := l.Refund(t.Context(), "o", 2, rule)
	if lost := w.Lost(); lost != 1 || !errors.Is(err, ErrUnavailable) {
		t.Fatalf("%d replies were lost: %v", lost, err)
	}
	if d := must(t)(l.Peek(t.Context(), "o", 1, rule)); d.Results[0].Remaining != 5 {
		t.Errorf("%+v", d)
	}
}

// TestTags: a single server decides about rules with different tags together; a cluster would not, and is not asked.
func TestTags(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"user-7": "user-7", "{user-7}:reply": "user-7", "a{b}{c}": "b", "a{}{c}": "a{}{c}", "a{b": "a{b", "a}b{c}": "c", "{{b}}": "{b", "": "",
	} {
		if got := TagOf(name); got != want {
			t.Errorf("the tag of %s is %q, want %q", name, got, want)
		}
	}
	cluster := redisclient.Open(redisclient.Options{Addrs: strings.Split(testenv.RedisCluster(t), ",")})
	t.Cleanup(func() { _ = cluster.Close() })
	rules := func(tags ...string) (all []Rule) {
		for i, l := range variants() {
			l.Limit, l.Burst = 3, 0
			if l.Algorithm == LeakyBucket {
				l.Burst = 3
			}
			all = append(all, Rule{Subject: fmt.Sprint(i), Limit: l, Tag: tags[i%len(tags)]})
		}
		return all
	}
	single, _ := setupReal(t)
	spread := New(cluster, strict(t))
	for _, l := range []*Limiter{single, spread} {
		for n := range 20 {
			one := rules(fmt.Sprint("one-", n))
			must(t)(l.Take(t.Context(), "o", 2, one...))
			if d := must(t)(l.Take(t.Context(), "o", 2, one...)); d.Allowed {
				t.Error("more than there is")
			}
			if d := must(t)(l.Refund(t.Context(), "o", 1, one...)); !d.Allowed || d.Results[0].Remaining != 2 {
				t.Errorf("%+v", d)
			}
			if d := must(t)(l.Reset(t.Context(), "o", 1, one...)); !d.Allowed || d.Results[6].Remaining != 3 {
				t.Errorf("%+v", d)
			}
		}
	}
	two := rules("one", "two", "three")
	for _, ask := range []func() (Decision, error){
		func() (Decision, error) { return spread.Take(t.Context(), "o", 1, two...) },
		func() (Decision, error) { return spread.Peek(t.Context(), "o", 1, two...) },
		func() (Decision, error) { return spread.Refund(t.Context(), "o", 1, two...) },
		func() (Decision, error) { return spread.Reset(t.Context(), "o", 1, two...) },
	} {
		if _, err := ask(); !errors.Is(err, ErrDifferentTags) {
			t.Errorf("a cluster: %v", err)
		}
	}
	if d := must(t)(single.Take(t.Context(), "o", 3, two...)); !d.Allowed {
		t.Errorf("%+v", d)
	}
	if d := must(t)(single.Take(t.Context(), "o", 1, two...)); d.Allowed {
		t.Errorf("%+v", d)
	}
	if d := must(t)(single.Take(t.Context(), "another", 1, two...)); !d.Allowed {
		t.Errorf("owners are not apart: %+v", d)
	}
}
