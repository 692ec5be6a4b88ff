package pushes

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkchange"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// bulkRefusedView is a push that a bulk change could not change.
type bulkRefusedView struct {
	Push   string   `json:"push" format:"uuid"`
	SendAt string   `json:"send_at" format:"date-time" doc:"The send time of the push when the bulk change was accepted."`
	Reason string   `json:"reason"`
	Rules  []string `json:"rules" doc:"The rules, quiet hours or caps that refused it."`
}

type bulkRefusedPageView struct {
	Refused       []bulkRefusedView `json:"refused" doc:"By their send time when the bulk change was accepted."`
	NextPageToken string            `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list."`
}

func bulkRefusedViewOf(p bulkchange.Push) bulkRefusedView {
	return bulkRefusedView{p.ID.String(), rest.Stamp(p.SendAt), p.Outcome, append([]string{}, p.Rules...)}
}

var bulkRefusedParams = rest.Pages[rest.PageParams]()

// listBulkRefused answers with a page of the pushes that a bulk change could not change.
func (h *bulkChanges) listBulkRefused(c *rest.Call) error {
	return rest.List(c, &bulkRefusedParams, func(q rest.PageParams, after push.Position) ([]bulkchange.Push, *push.Position, error) {
		page, err := h.svc.BulkRefused(c.Request.Context(), c.Caller.Tenant, c.ID, after, q.Size)
		return page.Pushes, page.Next, rest.NoSuch("bulk change", err)
	}, func(all []bulkchange.Push, next string) any {
		return bulkRefusedPageView{rest.ViewsOf(all, bulkRefusedViewOf), next}
	})
}

func exampleBulk(status bulkchange.Status) bulkChangeView {
	p := bulkchange.Change{
		ID: uuid.MustParse(rest.ExampleID), Action: bulkchange.Move, Status: status, Shift: 90 * time.Minute, Listed: true, Found: 1200, Changed: 1000, Refused: map[string]int64{QuotaExceeded.Name: 12},
		Filter: push.Filter{Category: "marketing", From: rest.ExampleTime(0), Until: rest.ExampleTime(24 * time.Hour)}, CreatedAt: rest.ExampleTime(-time.Hour), UpdatedAt: rest.ExampleTime(-time.Hour),
	}
	return bulkViewOf(p)
}

func (h *bulkChanges) routes(s *rest.Spec) []rest.Operation {
	refused := bulkchange.Push{ID: uuid.MustParse(rest.ExampleOtherID), SendAt: rest.ExampleTime(0), Outcome: QuotaExceeded.Name, Rules: []string{"per-day"}}
	return []rest.Operation{{
		ID: "create-bulk-change", Method: http.MethodPost, Path: BulkPath, Tag: TagPushes, Scope: push.ScopeWrite, Serve: h.createBulk,
		Summary: "Cancel or move all pushes that match a filter",
		Description: "The workers cancel or move the pushes one by one, as single requests would, through the quota: a refused push keeps its time. " +
			"The filter is frozen: it selects the pushes that are scheduled and match when the request is accepted, whatever is sent, booked or moved meanwhile. " +
			"A cancel cancels them also if they are moved before their turn. A push that is being sent is canceled, too, unless that attempt sends it: there is no other attempt. " +
			"A move leaves a push as it is that is being sent, or was moved by another request. " +
			"Pushes that move to later times are moved from the last to the first, others from the first to the last, so that pushes of one recipient do not block each other.\n\n" +
			"A tenant may have five running bulk changes. They can be read for 30 days after their end. With an Idempotency-Key, the request can be repeated safely during that time: the same key and body return the same bulk change. " +
			"With validate_only, nothing is changed or stored: the answer is a 200 with the number of matching pushes and, for a move, the number of the first 50 that would be accepted, each checked alone.",
		Query: &submitParams, Keyed: true,
		Body: bulkFields.Body(s, map[string]any{
			"action": "move", "shift": "1h30m", "filter": map[string]any{"category": "marketing", "from": "2026-12-01T08:00:00Z", "until": "2026-12-02T08:00:00Z"},
		}),
		Status: http.StatusAccepted, Answer: "The bulk change is running.", Example: exampleBulk(bulkchange.Running), Problems: []rest.Kind{TooManyBulk, rest.KeyReused},
		Finish: func(all map[string]*huma.Response) {
			all["200"] = s.Response("With validate_only: the effect of the bulk change.", bulkEstimateView{Found: 1200, Sample: &bulkSampleView{50, 49, 1}})
			rest.AddHeader(all["202"], "Location", "The path of the bulk change.")
			rest.AddHeader(all["202"], "Idempotency-Replayed", "true if an earlier request with the same Idempotency-Key created the bulk change.")
		},
	}, {
		ID: "list-bulk-changes", Method: http.MethodGet, Path: BulkPath, Tag: TagPushes, Scope: push.ScopeRead, Serve: h.listBulk,
		Summary: "List bulk changes", Description: "Lists the bulk changes that are running, and those that ended in the last 30 days.", Query: &bulksParams,
		Status: http.StatusOK, Answer: "A page of bulk changes.", Example: bulkChangesView{BulkChanges: []bulkChangeView{exampleBulk(bulkchange.Running)}},
	}, {
		ID: "get-bulk-change", Method: http.MethodGet, Path: BulkPath + "/{id}", Tag: TagPushes, Scope: push.ScopeRead, Serve: h.getBulk, Memory: rest.PushBytes,
		Summary: "Read a bulk change", Description: "Returns the bulk change and its progress, also after its end.",
		Status: http.StatusOK, Answer: "The bulk change.", Example: exampleBulk(bulkchange.Running), Problems: []rest.Kind{rest.NotFound},
	}, {
		ID: "list-bulk-change-refused", Method: http.MethodGet, Path: BulkPath + "/{id}/refused", Tag: TagPushes, Scope: push.ScopeRead, Serve: h.listBulkRefused,
		Summary: "List the pushes that a bulk change could not change", Description: "Lists the pushes by their send time when the bulk change was accepted.",
		Query:  &bulkRefusedParams,
		Status: http.StatusOK, Answer: "A page of pushes.", Example: bulkRefusedPageView{Refused: []bulkRefusedView{bulkRefusedViewOf(refused)}}, Problems: []rest.Kind{rest.NotFound},
	}, {
		ID: "cancel-bulk-change", Method: http.MethodPost, Path: BulkPath + "/{id}/cancel", Tag: TagPushes, Scope: push.ScopeWrite, Serve: h.cancelBulk, Memory: rest.PushBytes,
		Summary:     "Stop a bulk change",
		Description: "Pushes that were changed stay changed. A running step of up to 64 pushes is finished first; then the status is canceled. A bulk change that has ended stays as it is; stopping it again changes nothing.",
		Status:      http.StatusAccepted, Answer: "The current state of the bulk change.", Example: exampleBulk(bulkchange.Canceling), Problems: []rest.Kind{rest.NotFound},
	}}
}
