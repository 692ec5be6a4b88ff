package suppressions_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/storetest"
	"github.com/sendquota/sendquota/internal/suppression"
)

// to returns a draft with an address of its own.
func (b *bundle) to(recipient, channel, address string, in time.Duration) booking.Draft {
	d := storetest.Draft(b.TenantID, recipient, in)
	d.Push.Channel, d.Push.To = channel, address
	return d
}

// TestPut_Cancels checks that an entry cancels exactly the waiting pushes to its address, whoever has it, and frees their places.
func TestPut_Cancels(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.describe(t, "aiko", "mail", "Aiko@Example.com")
	b.describe(t, "bert", "log", "aiko@example.com")
	var gone, stay []push.Push
	for _, d := range []struct {
		booking.Draft
		gone bool
	}{
		{b.to("carl", "mail", "Aiko <Aiko@EXAMPLE.com>", time.Hour), true},
		{b.to("dora", "mail", "Aiko@example.com", 20*24*time.Hour), true},
		{b.to("aiko", "mail", "", time.Hour), true}, // the address of its recipient
		{b.to("aiko", "mail", "other@example.com", 2*time.Hour), false},
		{b.to("aiko", "log", "", 3*time.Hour), false},
		{b.to("bert", "log", "", time.Hour), false}, // another channel, and another local part
		{b.to("bert", "log", "Aiko@example.com", 2*time.Hour), false},
		{b.to("emil", "mail", "aiko@example.com", time.Hour), false}, // the local part decides
	} {
		v := b.books(t, d.Draft)
		if v.Outcome != booking.Booked {
			t.Fatalf("%+v", v)
		}
		if d.gone {
			gone = append(gone, v.Push)
		} else {
			stay = append(stay, v.Push)
		}
	}
	stored, canceled := b.suppress(t, b.entry("mail", "Aiko@Example.com", suppression.HardBounce))
	if canceled != len(gone) || !stored[0].Created || stored[0].Address != "Aiko@example.com" || stored[0].At.IsZero() {
		t.Errorf("%d were canceled; stored %+v", canceled, stored)
	}
	for _, p := range gone {
		if got := b.MustRead(t, p); got.Status != push.Canceled || got.LastError != suppression.Failed {
			t.Errorf("%s is %s, %q", p.Recipient, got.Status, got.LastError)
		}
	}
	for _, p := range stay {
		b.WantStatus(t, p, push.Scheduled)
	}
	if stored, canceled = b.suppress(t, b.entry("mail", "Aiko@example.com", suppression.HardBounce)); canceled != 0 || stored[0].Created {
		t.Errorf("again: %d were canceled, %+v", canceled, stored)
	}
	for _, d := range []booking.Draft{b.to("zora", "mail", "Aiko@example.com", time.Hour), b.to("aiko", "mail", "", time.Hour)} {
		if v := b.books(t, d); v.Outcome != booking.Suppressed || v.Suppression == nil || v.Suppression.Reason != suppression.HardBounce {
			t.Errorf("%+v", v)
		}
	}
	if err := b.deletes(t, "mail", "Aiko@example.com", suppression.Stop); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("delete of another reason: %v", err)
	}
	if err := b.deletes(t, "mail", "Aiko@example.com", ""); err != nil {
		t.Error(err)
	}
	if v := b.books(t, b.to("aiko", "mail", "", time.Hour)); v.Outcome != booking.Booked {
		t.Errorf("after the delete: %+v", v)
	}
	b.MustAudit(t, nil)
}

func (b *bundle) deletes(t testing.TB, channel, address string, reason suppression.Reason) error {
	_, err := b.DeleteSuppression(t.Context(), b.TenantID, channel, address, reason)
	return err
}

// TestPut_Until checks that an entry with an end is in force until then, and that one that has ended begins again.
func TestPut_Until(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.entry("log", "x", suppression.Manual)
	e.Until = time.Now().Add(time.Hour)
	stored, _ := b.suppress(t, e)
	if d := stored[0].Until.Sub(e.Until).Abs(); d > time.Millisecond {
		t.Errorf("until %s, want %s", stored[0].Until, e.Until)
	}
	if v := b.books(t, b.to("anna", "log", "x", 2*time.Hour)); v.Outcome != booking.Suppressed {
		t.Errorf("a send time after the end: %+v; it is refused until the end", v)
	}
	b.Exec(t, `UPDATE suppressions SET at = now() - interval '2 hours', until = now() - interval '1 second' WHERE tenant_id = $1`, b.TenantID)
	if v := b.books(t, b.to("anna", "log", "x", 2*time.Hour)); v.Outcome != booking.Booked {
		t.Errorf("after the end: %+v", v)
	}
	e.Until = time.Time{}
	again, canceled := b.suppress(t, e)
	if again[0].Created || !again[0].Until.IsZero() || time.Since(again[0].At) > time.Minute || canceled != 1 {
		t.Errorf("%+v, %d canceled", again, canceled)
	}
}

// TestPut_NoTenant rejects an entry of a tenant that does not exist.
func TestPut_NoTenant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.entry("log", "x", suppression.Manual)
	if _, _, err := b.PutSuppressions(t.Context(), noTenant, []suppression.Entry{e}, true); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// TestPut_RacingSubmits races submits of two processes with an entry. No push to the address waits afterwards, even if this is the
// tenant's first suppression.
func TestPut_RacingSubmits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := storetest.OpenURL(t, b.URL, store.Config{})
	for round := range 10 {
		if round%2 == 0 {
			b.Exec(t, `UPDATE tenants SET suppresses = false WHERE id = $1`, b.TenantID)
		}
		address := fmt.Sprint("address-", round)
		b.describe(t, fmt.Sprint("aiko-", round), "log", address)
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i, st := range []*store.Store{b.Store, other, b.Store, other} {
			for n := range 4 {
				all.Go(func() {
					<-begin
					for k := range 3 {
						d := b.to(fmt.Sprint("r", round, i, n, k), "log", address, time.Hour)
						if n%2 == 0 {
							d = b.to(fmt.Sprint("aiko-", round), "log", "", time.Duration(12*i+3*n+k)*time.Hour)
						}
						if _, err := st.Book(t.Context(), booking.Order{Drafts: []booking.Draft{d}, Policy: quota.Policy(nil), Now: time.Now()}); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		all.Go(func() {
			<-begin
			b.suppress(t, b.entry("log", address, suppression.Stop))
		})
		close(begin)
		all.Wait()
		if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM live WHERE tenant_id = $1`, b.TenantID); n > 0 {
			t.Fatalf("round %d: %d pushes to the address wait", round, n)
		}
	}
}

// TestClaim_Suppressed checks the second gate: a push that waits although its address is suppressed fails without an attempt. A retry of one
// that was being sent does, too.
func TestClaim_Suppressed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.describe(t, "aiko", "log", "x")
	var due []push.Push
	for _, d := range []booking.Draft{b.to("anna", "log", "x", -time.Second), b.to("aiko", "log", "", -time.Second), b.to("bert", "log", "y", -time.Second)} {
		due = append(due, b.books(t, d).Push)
	}
	sending := b.books(t, b.to("carl", "log", "x", -time.Second)).Push
	claim := b.Claimed(t, sending)
	// An entry that no cancellation has followed.
	b.Exec(t, `INSERT INTO suppressions (tenant_id, channel, address, reason, address_key) VALUES ($1, 'log', 'x', 'stop', $2)`, b.TenantID, suppression.KeyOf(b.TenantID, "log", "x"))
	b.Exec(t, `UPDATE tenants SET suppresses = true WHERE id = $1`, b.TenantID)
	b.MustFinish(t, claim, storetest.TryAgain)
	for _, p := range append(due[:2:2], sending) {
		if c := b.MustClaim(t, p.Recipient, nil); c.Outcome != booking.SuppressedNow {
			t.Errorf("%s: %+v", p.Recipient, c)
		}
		if got := b.MustRead(t, p); got.Status != push.Failed || got.LastError != suppression.Failed || got.Attempts != len(got.Sends) {
			t.Errorf("%s: %s, %q, %d attempts", p.Recipient, got.Status, got.LastError, got.Attempts)
		}
	}
	b.Claimed(t, due[2])
	b.MustAudit(t, nil)
}

// TestSuppressions_List checks the order, the filters and the pages of the list.
func TestSuppressions_List(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := uuid.New()
	b.Exec(t, `INSERT INTO tenants (id, name) VALUES ($1::uuid, $1::text)`, other)
	var all []suppression.Entry
	for i := range 30 {
		for _, channel := range []string{"log", "mail"} {
			all = append(all, b.entry(channel, fmt.Sprintf("a%02d", i), suppression.Reasons[i%len(suppression.Reasons)]))
		}
	}
	b.suppress(t, all...)
	if _, _, err := b.PutSuppressions(t.Context(), other, []suppression.Entry{{Tenant: other, Channel: "log", Address: "a00", Reason: suppression.Manual}}, false); err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		suppression.Filter
		want int
	}{
		{suppression.Filter{}, 60}, {suppression.Filter{Channel: "mail"}, 30}, {suppression.Filter{Address: "a07"}, 2}, {suppression.Filter{Reason: suppression.Stop}, 12},
		{suppression.Filter{Channel: "log", Address: "a07", Reason: suppression.Stop}, 1}, {suppression.Filter{Address: "b"}, 0},
	} {
		var (
			after suppression.Position
			got   []suppression.Entry
		)
		for {
			page, err := b.Suppressions(t.Context(), b.TenantID, f.Filter, after, 7)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Entries {
				p := e.Position()
				if e.Tenant != b.TenantID || p.Address < after.Address || p == after {
					t.Errorf("%+v after %+v", p, after)
				}
				after = p
			}
			if got = append(got, page.Entries...); page.Next == nil {
				break
			}
			after = *page.Next
		}
		if len(got) != f.want {
			t.Errorf("%+v: %d entries, want %d", f.Filter, len(got), f.want)
		}
	}
}
