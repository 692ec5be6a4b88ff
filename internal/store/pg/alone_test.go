package pg_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// noBooking holds up the transaction that books single drafts, so that others gather behind it. A lock of a recipient does not: such a
// transaction waits for none.
const noBooking = `LOCK TABLE live IN SHARE MODE`

// TestBook_BadDraftInGroup checks that a draft that breaks the transaction of a group fails alone.
func TestBook_BadDraftInGroup(t *testing.T) {
	t.Parallel()
	g := storetest.Gather(t, setupAlone(t).Bundle)
	order := func(d booking.Draft) booking.Order {
		return booking.Order{Drafts: []booking.Draft{d}, Policy: storetest.ThreeRules}
	}
	for try := range 50 {
		in := time.Duration(try+1) * 25 * time.Hour
		ahead := func(recipient string) func() {
			return func() {
				if v, err := g.Book(t.Context(), order(storetest.Draft(g.TenantID, recipient, in))); err != nil || v[0].Outcome != booking.Booked {
					t.Errorf("%s: %+v, %v", recipient, v, err)
				}
			}
		}
		bad := func() {
			d := storetest.Draft(g.TenantID, "bad", in)
			d.Push.Message = []byte(`{"title": `)
			if v, err := g.Book(t.Context(), order(d)); err == nil || strings.Contains(err.Error(), push.ErrUnavailable.Error()) {
				t.Errorf("a message that is no JSON: %+v, %v", v, err)
			}
		}
		if g.Together(t, noBooking, nil, []func(){ahead("x")}, []func(){ahead("anna"), bad, ahead("bert"), ahead("carl")}) {
			return
		}
	}
	t.Error("the calls never shared a transaction")
}

// TestFinish_BadFinishInGroup checks that a finish that breaks the transaction of a group fails alone. An attempt whose
// end is not recorded would be repeated.
func TestFinish_BadFinishInGroup(t *testing.T) {
	t.Parallel()
	g := storetest.Gather(t, setup(t).Bundle)
	for range 50 {
		ends := func(recipient string, wrong bool) (push.Push, func()) {
			p := g.Booked(t, recipient, 0)
			c := g.Claimed(t, p)
			f := storetest.Sent
			f.Attempt = c.Attempted()
			if wrong {
				f.ProviderMessageID = "no text: \x00"
			}
			return p, func() {
				if _, err := g.Finish(t.Context(), f); (err != nil) != wrong {
					t.Errorf("%s: %v", recipient, err)
				}
			}
		}
		x, endX := ends("x", false)
		_, endAnna := ends("anna", false)
		bad, endBad := ends("bad", true)
		_, endBert := ends("bert", false)
		together := g.Together(t, `SELECT FROM pushes WHERE id = ANY ($1) FOR UPDATE`, []any{[][16]byte{x.ID}},
			[]func(){endX}, []func(){endAnna, endBad, endBert})
		g.Exec(t, `UPDATE pushes SET status = 'failed' WHERE id = $1`, bad.ID)
		if together || t.Failed() {
			return
		}
	}
	t.Error("the calls never shared a transaction")
}

// TestBook_DryRunInGroup checks that a dry run does not take the time of another order of its group.
func TestBook_DryRunInGroup(t *testing.T) {
	t.Parallel()
	g := storetest.Gather(t, setupAlone(t).Bundle)
	for try := range 50 {
		in := time.Duration(try+1) * 25 * time.Hour
		book := func(recipient string, dryRun bool) func() {
			o := booking.Order{Drafts: []booking.Draft{storetest.Draft(g.TenantID, recipient, in)}, Policy: storetest.ThreeRules, DryRun: dryRun}
			return func() {
				if v, err := g.Book(t.Context(), o); err != nil || !dryRun && v[0].Outcome != booking.Booked {
					t.Errorf("%s: %+v, %v", recipient, v, err)
				}
			}
		}
		var calls []func()
		for i := range 10 {
			calls = append(calls, book("anna", i != 5)) // the test does not control the order of the calls
		}
		if g.Together(t, noBooking, nil, []func(){book("x", false)}, calls) && try >= 5 {
			return
		}
	}
	t.Error("the calls never shared a transaction")
}

// TestBook_Places checks that a tenant fills transactions with single pushes while it is alone. While another tenant
// books, it has few pushes in each transaction. The same holds for pushes to one recipient with very many bookings.
func TestBook_Places(t *testing.T) {
	t.Parallel()
	for name, recipient := range map[string]func() string{"many recipients": uuid.NewString, "one with many bookings": func() string { return "hot" }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := storetest.Gather(t, setupAlone(t).Bundle)
			g.Fill(t, "hot", booking.Crowd+1, time.Now().Truncate(time.Second), time.Minute)
			testBookPlaces(t, g, recipient)
		})
	}
}

func testBookPlaces(t *testing.T, g *storetest.Gathering, recipient func() string) {
	t.Helper()
	calm := uuid.New()
	bookLoud := func() {
		if _, err := g.Book(t.Context(), booking.Order{Drafts: []booking.Draft{storetest.Draft(g.TenantID, recipient(), time.Hour)}, Policy: storetest.ThreeRules}); err != nil {
			t.Error(err)
		}
	}
	largest := func(beside bool) int {
		g.Mu.Lock()
		g.Sizes = nil
		g.Mu.Unlock()
		var loud sync.WaitGroup
		for i := range 200 {
			if beside && i%20 == 0 {
				storetest.MustBook(t, g.Store, storetest.ThreeRules, storetest.Draft(calm, uuid.NewString(), time.Hour))
				bookLoud()
			}
			loud.Go(bookLoud)
		}
		loud.Wait()
		g.Mu.Lock()
		defer g.Mu.Unlock()
		return slices.Max(g.Sizes)
	}
	for range 50 {
		if alone, beside := largest(false), largest(true); alone > 17 && beside <= 17 {
			return
		}
		time.Sleep(300 * time.Millisecond) // until the other tenant is forgotten
	}
	t.Errorf("beside another tenant, groups were never smaller than when alone: %d", g.Sizes)
}
