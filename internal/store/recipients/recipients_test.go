package recipients_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
)

// TestDescribe_RacingSubmits races submits of two processes, single and in batches, with an opt-out. No push that the
// recipient does not want is scheduled afterwards, even if this is the tenant's first description of a recipient.
func TestDescribe_RacingSubmits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := storetest.OpenURL(t, b.URL, store.Config{})
	for round := range 20 {
		if round%2 == 0 { // as if the tenant had never described a recipient
			b.Exec(t, `UPDATE tenants SET described = false WHERE id = $1`, b.TenantID)
		}
		recipient := fmt.Sprint("aiko-", round)
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i, st := range []*store.Store{b.Store, other, b.Store, other} {
			for n := range 4 {
				all.Go(func() {
					<-begin
					drafts := []booking.Draft{storetest.Draft(b.TenantID, recipient, time.Duration(10*i+n)*time.Hour)}
					if i > 1 {
						drafts = append(drafts, storetest.Draft(b.TenantID, fmt.Sprint("bert-", round), time.Duration(10*i+n)*time.Hour))
					}
					for range 3 {
						for k := range drafts {
							drafts[k].Push.ID = push.NewID(drafts[k].Push.SendAt, push.RecipientKey(b.TenantID, drafts[k].Push.Recipient))
						}
						if _, err := st.Book(t.Context(), booking.Order{Drafts: drafts, Now: time.Now()}); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		var described booking.Described
		all.Go(func() {
			<-begin
			described = b.Say(t, booking.Description{Recipient: recipient, OptOuts: booking.OptOuts{All: true}})
		})
		close(begin)
		all.Wait()
		count := func(status push.Status) int {
			return storetest.Ask[int](t, b.Watch, `SELECT count(*) FROM pushes WHERE tenant_id = $1 AND recipient = $2 AND status = $3`, b.TenantID, recipient, string(status))
		}
		if n := count(push.Scheduled); n > 0 {
			t.Fatalf("round %d: %d pushes survive the opt-out", round, n)
		}
		if n := count(push.Canceled); n != described.Pushes {
			t.Fatalf("round %d: %d pushes are canceled, and the answer says %d", round, n, described.Pushes)
		}
	}
	b.MustAudit(t, nil)
}

// TestDescribe_Collision checks that a description does not apply to another recipient with the same key.
func TestDescribe_Collision(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	d, key := storetest.Draft(b.TenantID, "bert", time.Hour), push.RecipientKey(b.TenantID, "anna")
	d.Push.ID = push.NewID(d.Push.SendAt, key)
	bert := storetest.MustBook(t, b.Store, nil, d).Push
	b.Exec(t, `UPDATE pushes SET recipient_key = $1`, key)
	if d := b.Say(t, booking.Description{Recipient: "anna", OptOuts: booking.OptOuts{All: true}}); d.Pushes != 0 || !d.Created {
		t.Errorf("%+v", d)
	}
	b.WantStatus(t, bert, push.Scheduled)
	if e, err := b.Erase(t.Context(), quota.Recipient{Tenant: b.TenantID, ID: "anna"}); err != nil || e.Pushes != 0 || e.Rows != 1 {
		t.Errorf("%+v, %v", e, err)
	}
	b.WantStatus(t, bert, push.Scheduled)
}

// TestDescribe_Many checks that one transaction cancels many pushes.
func TestDescribe_Many(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := many(2500)
	b.bookMany(t, n)
	began := time.Now()
	described := b.Say(t, booking.Description{Recipient: "anna", OptOuts: booking.OptOuts{Categories: []string{""}, Channels: []string{"push"}}})
	t.Logf("%d pushes in %s", n, time.Since(began))
	if waits := storetest.Ask[int](t, b.Watch, `SELECT count(*) FROM live WHERE tenant_id = $1`, b.TenantID); described.Pushes != n || waits != 0 {
		t.Errorf("%d of %d pushes are canceled, %d wait", described.Pushes, n, waits)
	}
	b.MustAudit(t, nil)
}

// many returns the number of pushes that a test books: MANY_PUSHES, if it is set to measure, or the usual number.
func many(usually int) int {
	if n, err := strconv.Atoi(os.Getenv("MANY_PUSHES")); err == nil {
		return n
	}
	return usually
}

// bookMany books n pushes for anna, half of them at the same time.
func (b *bundle) bookMany(t *testing.T, n int) {
	t.Helper()
	for from := 0; from < n; from += 500 {
		o := booking.Order{Now: time.Now()}
		for i := from; i < from+500; i++ {
			in := time.Hour
			if i%2 == 0 {
				in = time.Duration(i%40) * 24 * time.Hour
			}
			o.Drafts = append(o.Drafts, storetest.Draft(b.TenantID, "anna", in+time.Hour))
		}
		if _, err := b.Book(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// TestErase_ComesBack checks that pushes that are booked and sent for the same id after an erasure has begun belong to
// a new person, and stay.
func TestErase_ComesBack(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	waits, sent1 := b.Booked(t, "anna", time.Hour), b.Booked(t, "anna", -time.Minute)
	b.MustFinish(t, b.Claimed(t, sent1), storetest.Sent)
	flying := b.Booked(t, "anna", -time.Second)
	attempt := b.Claimed(t, flying)
	var stays, stay []push.Push
	erased, err := b.EraseSlowly(t.Context(), quota.Recipient{Tenant: b.TenantID, ID: "anna"}, func() {
		stays = append(stays, b.Booked(t, "anna", 2*time.Hour))
		if len(stays) == 1 {
			b.MustFinish(t, attempt, storetest.TryAgain)
			return
		}
		p := b.Booked(t, "anna", 0)
		b.MustFinish(t, b.Claimed(t, p), storetest.Sent)
		stay = append(stay, p)
	})
	if err != nil || erased.Pushes != 2 || erased.Rows != 5 { // three pushes, two attempts
		t.Errorf("%+v, %v", erased, err)
	}
	for _, p := range []push.Push{waits, sent1, flying} {
		if got, err := b.Push(t.Context(), b.TenantID, p.ID); !errors.Is(err, push.ErrNotFound) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	for _, p := range stays {
		b.WantStatus(t, p, push.Scheduled)
	}
	for _, p := range stay {
		if got := b.MustRead(t, p); got.Status != push.Sent || got.Recipient != "anna" || len(got.Sends) != 1 {
			t.Errorf("%+v", got)
		}
	}
	if n := storetest.Ask[int](t, b.Watch, `SELECT count(*) FROM sends WHERE recipient = 'anna'`); n != len(stay) || n < 3 {
		t.Errorf("%d attempts, want %d", n, len(stay))
	}
	b.MustAudit(t, nil)
}

// TestErase_Steps checks that a recipient with more pushes than one step erases, in several weeks and at the same time,
// is erased as a whole. Pushes of other recipients stay.
func TestErase_Steps(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	n := many(2500)
	b.bookMany(t, n)
	b.Exec(t, `WITH l AS (DELETE FROM live WHERE push_id IN (SELECT push_id FROM live ORDER BY push_id LIMIT $1) RETURNING push_id)
		UPDATE pushes SET status = 'canceled', freed = true FROM l WHERE id = push_id`, n/2)
	kept := b.Booked(t, "bert", time.Hour)
	began := time.Now()
	erased, err := b.Erase(t.Context(), quota.Recipient{Tenant: b.TenantID, ID: "anna"})
	t.Logf("%d pushes in %s", n, time.Since(began))
	if err != nil || erased.Pushes != n-n/2 || erased.Rows != n || len(erased.Days) < 20 {
		t.Errorf("%d canceled, %d rows on %d days, %v", erased.Pushes, erased.Rows, len(erased.Days), err)
	}
	left := storetest.Ask[string](t, b.Watch, `SELECT string_agg(DISTINCT concat_ws(' ', recipient, address, message, metadata, request_id), ',') FROM pushes WHERE id <> $1`, [16]byte(kept.ID))
	if strings.TrimSpace(left) != "{}" {
		t.Errorf("left: %q", left)
	}
	if waits := storetest.Ask[int](t, b.Watch, `SELECT count(*) FROM live`); waits != 1 {
		t.Errorf("%d pushes wait", waits)
	}
	b.WantStatus(t, kept, push.Scheduled)
	if again, err := b.Erase(t.Context(), quota.Recipient{Tenant: b.TenantID, ID: "anna"}); err != nil || again.Rows != 0 || again.Pushes != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
	b.MustAudit(t, nil)
}

// TestDescriptions_PageSize checks that a page ends at about a mebibyte, whichever part of the descriptions is large.
func TestDescriptions_PageSize(t *testing.T) {
	t.Parallel()
	many := func(n, bytes int) (words []string) {
		for i := range n {
			words = append(words, fmt.Sprintf("%0*d", bytes, i))
		}
		return words
	}
	large := booking.Description{Addresses: map[string]string{}, Limits: map[string]int{}, Attributes: []byte(`{}`)}
	for i, word := range many(64, 64) {
		large.Addresses[word] = strings.Repeat("a", 512)
		if i < 50 {
			large.Limits[word] = booking.MaxLimit
		}
	}
	large.OptOuts.Channels, large.OptOuts.Categories = many(64, 64), many(64, 64)
	for name, d := range map[string]booking.Description{
		"addresses":  {Addresses: large.Addresses},
		"opt-outs":   {OptOuts: large.OptOuts},
		"limits":     {Limits: large.Limits},
		"attributes": {Attributes: []byte(`{"a": "` + strings.Repeat("a", booking.MaxAttributes-20) + `"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			all := make([]booking.Description, 400)
			for i := range all {
				all[i] = d
				all[i].Recipient = fmt.Sprintf("%0128d", i)
			}
			if _, err := b.Describe(t.Context(), b.TenantID, all); err != nil {
				t.Fatal(err)
			}
			read, after := 0, ""
			for more := true; more; {
				var page []booking.Description
				var err error
				if page, more, err = b.Descriptions(t.Context(), b.TenantID, booking.DescriptionFilter{}, after, len(all)); err != nil {
					t.Fatal(err)
				}
				if text, _ := json.Marshal(page); len(text) > 1200<<10 || more && len(text) < 700<<10 {
					t.Errorf("a page of %d has %d bytes", len(page), len(text))
				}
				if read += len(page); len(page) > 0 {
					after = page[len(page)-1].Recipient
				}
			}
			if read != len(all) {
				t.Errorf("%d of %d were read", read, len(all))
			}
		})
	}
}
