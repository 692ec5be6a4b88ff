package campaigns_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store/campaigns"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/push"
)

// draftCampaign creates a draft.
func (b *bundle) draftCampaign(t *testing.T) broadcast.Campaign {
	t.Helper()
	p, _, err := b.CreateCampaign(t.Context(), campaigns.NewCampaign{Most: 10, Campaign: broadcast.Campaign{
		ID: uuid.New(), Tenant: b.TenantID, Channel: "push", OnConflict: "reject", Message: json.RawMessage(`{}`),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// linesOf returns two lines for each of a number of recipients.
func linesOf(recipients, from int) (all []broadcast.AudienceLine) {
	for i := range 2 * recipients {
		all = append(all, broadcast.AudienceLine{Line: from + i, Recipient: fmt.Sprint("user-", i%recipients), Variables: json.RawMessage(fmt.Sprintf(`{"line":%d}`, from+i))})
	}
	return all
}

// TestUpload_EachOnce checks that the first line of a recipient stays, within a portion and across portions, by shard
// and in one call. A portion whose commit lost its reply counts the lines that it has stored.
func TestUpload_EachOnce(t *testing.T) {
	t.Parallel()
	for name, shards := range map[string]bool{"at once": false, "by shard": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, w := setupProxy(t)
			if shards {
				b.Store = storetest.OpenURL(t, w.URL, pg.Config{Lanes: push.Shards})
			}
			p := b.draftCampaign(t)
			w.LoseNext("COMMIT")
			u, err := b.BeginUpload(t.Context(), push.Caller{Tenant: b.TenantID}, p.ID)
			if err != nil {
				t.Fatal(err)
			}
			w.WantLost(t, 1)
			total := 0
			for round, want := range []int{100, 0} {
				w.LoseNext("COMMIT")
				added, err := b.AddLines(t.Context(), u, linesOf(100, 2+round*200))
				if err != nil || added != want {
					t.Fatalf("%d lines, %v, want %d", added, err, want)
				}
				w.WantLost(t, 2+round)
				total += added
			}
			w.LoseNext("COMMIT")
			if p, err = b.EndUpload(t.Context(), u, int64(total)); err != nil || p.Audience != u.ID || p.Size != 100 || p.Progress.Pending != 100 {
				t.Fatalf("%+v, %v", p, err)
			}
			w.WantLost(t, 4)
			if err := b.DropUpload(t.Context(), u); err != nil { // it has ended
				t.Fatal(err)
			}
			if got := storetest.Ask[string](t, b.DB, `SELECT concat_ws(' ', count(*), min(line), max(line), sum((variables->>'line')::int - line), bool_and(NOT u.ended))
				FROM campaign_recipients r JOIN campaign_uploads u ON u.id = r.audience_id WHERE r.tenant_id = $1`, b.TenantID); got != "100 2 101 0 t" {
				t.Error(got)
			}
			all, err := b.Lines(t.Context(), &p, "", 3)
			if err != nil || len(all) != 3 || all[0].Recipient != "user-0" || all[2].Line != 4 {
				t.Errorf("%+v, %v", all, err)
			}
			one, err := b.Lines(t.Context(), &p, "user-7", 3)
			if err != nil || len(one) != 1 || one[0].Line != 9 || one[0].Attributes != nil {
				t.Errorf("%+v, %v", one, err)
			}
			w.LoseNext("COMMIT")
			if err := b.DeleteDraft(t.Context(), b.TenantID, p.ID); err != nil {
				t.Error(err)
			}
			w.WantLost(t, 5)
			if err := b.DeleteDraft(t.Context(), b.TenantID, p.ID); !errors.Is(err, push.ErrNotFound) {
				t.Error(err)
			}
		})
	}
}

// TestCopyAudience_Capped checks that a copy counts against the bytes of the tenant's audiences before it begins, and
// that one that does not fit leaves nothing.
func TestCopyAudience_Capped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.draftCampaign(t)
	u, err := b.BeginUpload(t.Context(), push.Caller{Tenant: b.TenantID}, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	lines, bytes := linesOf(10, 2), 0
	for i := range lines {
		bytes += lines[i].Bytes()
	}
	added, err := b.AddLines(t.Context(), u, lines)
	if err == nil {
		_, err = b.EndUpload(t.Context(), u, int64(added))
	}
	if err != nil {
		t.Fatal(err)
	}
	c := broadcast.Copy{ID: uuid.New(), Tenant: b.TenantID, Of: p.ID}
	_, err = b.CopyAudience(t.Context(), c, 2*bytes-1)
	if capped, is := errors.AsType[*booking.Capped](err); !is || capped.Cap != booking.AudienceBytes || capped.Used != 2*bytes {
		t.Errorf("%v, want %d bytes", err, 2*bytes)
	}
	for whole := false; !whole; { // where each shard is a lane, a call copies one
		if whole, err = b.CopyAudience(t.Context(), c, 2*bytes); err != nil {
			t.Fatal(err)
		}
	}
}
