package pushes

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulk"
	"github.com/sendquota/sendquota/internal/bulkchange"
	"github.com/sendquota/sendquota/internal/rest"
)

// BulkPath is the path of the bulk changes.
const BulkPath = "/v1/bulk-changes"

// bulkChangeView is a bulk change as the API shows it.
type bulkChangeView struct {
	ID        string            `json:"id" format:"uuid"`
	Action    bulkchange.Action `json:"action" enum:"cancel,move"`
	Status    bulkchange.Status `json:"status" enum:"running,canceling,canceled,done" doc:"canceling: the bulk change was stopped, and its last step may still be running."`
	Filter    bulkFilterView    `json:"filter"`
	Erased    bool              `json:"erased" doc:"true: the recipient of the filter was erased, and the filter no longer names it."`
	Shift     *string           `json:"shift" nullable:"true"`
	SendAt    *string           `json:"send_at" format:"date-time" nullable:"true"`
	Listed    bool              `json:"listed" doc:"false: the pushes are still being listed, and found grows."`
	Found     int64             `json:"found" doc:"The matching pushes: changed, refused, pending and gave_up together."`
	Changed   int64             `json:"changed" doc:"Pushes that were canceled or moved."`
	Refused   int64             `json:"refused" doc:"Pushes that were sent, or of a move: moved, before their turn, or had no place at their new time. The bulk change did not change them."`
	Reasons   map[string]int64  `json:"refused_by_reason" doc:"refused by reason: the name of the problem of a single request, or not-scheduled, moved-meanwhile, invalid-time or internal."`
	Pending   int64             `json:"pending" doc:"Pushes that are not yet handled, such as those that are being sent."`
	GaveUp    int64             `json:"gave_up" doc:"Pushes that were not handled before the bulk change was canceled, or that belong to an erased recipient."`
	CreatedAt string            `json:"created_at" format:"date-time"`
	UpdatedAt string            `json:"updated_at" format:"date-time"`
	EndedAt   *string           `json:"ended_at" format:"date-time" nullable:"true"`
}

type bulkFilterView struct {
	Recipient string  `json:"recipient,omitempty"`
	Channel   string  `json:"channel,omitempty"`
	Category  string  `json:"category,omitempty"`
	Campaign  *string `json:"campaign,omitempty" format:"uuid"`
	From      *string `json:"from,omitempty" format:"date-time"`
	Until     *string `json:"until,omitempty" format:"date-time"`
}

type bulkChangesView struct {
	BulkChanges   []bulkChangeView `json:"bulk_changes" doc:"The latest first."`
	NextPageToken string           `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list."`
}

// bulkEstimateView is the estimated effect of a bulk change.
type bulkEstimateView struct {
	Found  int             `json:"found" doc:"The number of scheduled pushes that match now; for a cancel, with those that are being sent."`
	More   bool            `json:"more" doc:"true: 100,000 pushes were examined, and the rest was not counted."`
	Sample *bulkSampleView `json:"sample" doc:"For a move, the first pushes, each checked alone; null for a cancel."`
}

// TransformSchema allows sample to be null.
func (bulkEstimateView) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return rest.WithNull(s, "sample")
}

type bulkSampleView struct {
	Pushes   int `json:"pushes"`
	Accepted int `json:"accepted"`
	Refused  int `json:"refused"`
}

func bulkViewOf(p bulkchange.Change) bulkChangeView {
	f := p.Filter
	v := bulkChangeView{
		ID: p.ID.String(), Action: p.Action, Status: p.Status, Erased: p.Erased, SendAt: rest.MaybeTime(p.SendAt), Listed: p.Listed, Found: p.Found, Changed: p.Changed,
		Reasons: map[string]int64{}, CreatedAt: rest.Stamp(p.CreatedAt), UpdatedAt: rest.Stamp(p.UpdatedAt), EndedAt: rest.MaybeTime(p.EndedAt),
		Filter: bulkFilterView{Recipient: f.Recipient, Channel: f.Channel, Category: f.Category, Campaign: rest.MaybeID(f.Campaign), From: rest.MaybeTime(f.From), Until: rest.MaybeTime(f.Until)},
	}
	for reason, n := range p.Refused {
		v.Reasons[reason] = n
		v.Refused += n
	}
	if v.Pending = p.Left(); !p.EndedAt.IsZero() {
		v.Pending, v.GaveUp = 0, v.Pending
	}
	if p.Shift != 0 {
		v.Shift = rest.MaybeText(p.Shift.String())
	}
	return v
}

// createBulk creates a bulk change, or estimates its effect.
func (h *bulkChanges) createBulk(c *rest.Call) error {
	o := options(c, &c.Errors)
	p, body, wrong, err := h.readBulk(c, &c.Errors)
	if err != nil {
		return err
	}
	if o.ValidateOnly {
		if wrong != nil {
			return wrong
		}
		return h.estimateBulk(c, p)
	}
	key := bulk.Key{Text: o.IdempotencyKey}
	if key.Text != "" {
		key.Hash = rest.RequestHash(BulkPath, body)
	}
	p, replayed, err := h.svc.Create(c.Request.Context(), p, key, wrong)
	if err != nil {
		return rest.NoSuch("bulk change", err)
	}
	v := bulkViewOf(p)
	c.Header("Location", BulkPath+"/"+v.ID)
	if replayed {
		c.Header("Idempotency-Replayed", "true")
	}
	return c.Answer(http.StatusAccepted, v)
}

func (h *bulkChanges) estimateBulk(c *rest.Call, p bulkchange.Change) error {
	e, err := h.svc.Estimate(c.Request.Context(), p, c.Caller.Caps)
	if err != nil {
		return err
	}
	v := bulkEstimateView{Found: e.Found, More: e.More}
	if p.Action == bulkchange.Move {
		v.Sample = &bulkSampleView{e.Sampled, e.Accepted, e.Rejected}
	}
	return c.Answer(http.StatusOK, v)
}

func (h *bulkChanges) getBulk(c *rest.Call) error {
	return c.ByID("bulk change", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		p, err := h.svc.BulkChange(ctx, tenant, id)
		return bulkViewOf(p), err
	})
}

func (h *bulkChanges) cancelBulk(c *rest.Call) error {
	return c.ByID("bulk change", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		p, err := h.svc.CancelBulkChange(ctx, tenant, id)
		return bulkViewOf(p), err
	})
}

var bulksParams = rest.Pages[rest.PageParams]()

// listBulk answers with a page of the tenant's bulk changes.
func (h *bulkChanges) listBulk(c *rest.Call) error {
	return rest.List(c, &bulksParams, func(q rest.PageParams, after bulkchange.Position) ([]bulkchange.Change, *bulkchange.Position, error) {
		page, err := h.svc.BulkChanges(c.Request.Context(), c.Caller.Tenant, after, q.Size)
		return page.Changes, page.Next, err
	}, func(all []bulkchange.Change, next string) any {
		return bulkChangesView{rest.ViewsOf(all, bulkViewOf), next}
	})
}
