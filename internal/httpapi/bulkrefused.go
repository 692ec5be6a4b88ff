package httpapi

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// bulkRefusedView is a push that a bulk change could not change.
type bulkRefusedView struct {
	Push   string   `json:"push" format:"uuid"`
	SendAt string   `json:"send_at" format:"date-time" doc:"The send time when the bulk change listed the push."`
	Reason string   `json:"reason"`
	Rules  []string `json:"rules" doc:"The rules, quiet hours or caps that refused it."`
}

type bulkRefusedPageView struct {
	Refused       []bulkRefusedView `json:"refused" doc:"By send time when the bulk change listed them."`
	NextPageToken string            `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list."`
}

func bulkRefusedViewOf(p push.BulkPush) bulkRefusedView {
	return bulkRefusedView{p.ID.String(), stamp(p.SendAt), p.Outcome, append([]string{}, p.Rules...)}
}

var bulkRefusedParams = pages[pageParams]()

// listBulkRefused answers with a page of the pushes that a bulk change could not change.
func (h *bulkChanges) listBulkRefused(c *call) error {
	return list(c, &bulkRefusedParams, func(q pageParams, after push.Position) ([]push.BulkPush, *push.Position, error) {
		page, err := h.svc.BulkRefused(c.r.Context(), c.caller.Tenant, c.id, after, q.size)
		return page.Pushes, page.Next, noSuch("bulk change", err)
	}, func(all []push.BulkPush, next string) any {
		return bulkRefusedPageView{viewsOf(all, bulkRefusedViewOf), next}
	})
}

func exampleBulk(status push.BulkStatus) bulkChangeView {
	p := push.BulkChange{
		ID: uuid.MustParse(exampleID), Action: push.BulkMove, Status: status, Shift: 90 * time.Minute, Listed: true, Found: 1200, Changed: 1000, Refused: map[string]int64{quotaExceeded.Name: 12},
		Filter: push.Filter{Category: "marketing", From: exampleTime(0), Until: exampleTime(24 * time.Hour)}, CreatedAt: exampleTime(-time.Hour), UpdatedAt: exampleTime(-time.Hour),
	}
	return bulkViewOf(p)
}

func (h *bulkChanges) routes(s *spec) []operation {
	refused := push.BulkPush{ID: uuid.MustParse(exampleOtherID), SendAt: exampleTime(0), Outcome: quotaExceeded.Name, Rules: []string{"per-day"}}
	return []operation{{
		id: "create-bulk-change", method: http.MethodPost, path: bulkPath, tag: tagPushes, scope: push.ScopeWrite, serve: h.createBulk,
		summary: "Cancel or move all pushes that match a filter",
		description: "The workers cancel or move the pushes one by one, as single requests would, through the quota: a refused push keeps its time. " +
			"The filter selects the pushes that are scheduled and match when the request is accepted. A push that is sent before its turn is not changed, " +
			"and a push that matches only later, because it was booked or moved, is not changed either. " +
			"Pushes that move to later times are moved from the last to the first, others from the first to the last, so that pushes of one recipient do not block each other.\n\n" +
			"A tenant may have five running bulk changes. They can be read for 30 days after their end. With an Idempotency-Key, the request can be repeated safely during that time: the same key and body return the same bulk change. " +
			"With validate_only, nothing is changed or stored: the answer is a 200 with the number of matching pushes and, for a move, the number of the first 50 that would be accepted, each checked alone.",
		query: &submitParams, keyed: true,
		body: bulkFields.body(s, map[string]any{
			"action": "move", "shift": "1h30m", "filter": map[string]any{"category": "marketing", "from": "2026-12-01T08:00:00Z", "until": "2026-12-02T08:00:00Z"},
		}),
		status: http.StatusAccepted, answer: "The bulk change is running.", example: exampleBulk(push.BulkRunning), problems: []kind{tooManyBulk, keyReused},
		finish: func(all map[string]*huma.Response) {
			all["200"] = s.response("With validate_only: the effect of the bulk change.", bulkEstimateView{Found: 1200, Sample: &bulkSampleView{50, 49, 1}})
			addHeader(all["202"], "Location", "The path of the bulk change.")
			addHeader(all["202"], "Idempotency-Replayed", "true if an earlier request with the same Idempotency-Key created the bulk change.")
		},
	}, {
		id: "list-bulk-changes", method: http.MethodGet, path: bulkPath, tag: tagPushes, scope: push.ScopeRead, serve: h.listBulk,
		summary: "List bulk changes", description: "Lists the bulk changes that are running, and those that ended in the last 30 days.", query: &bulksParams,
		status: http.StatusOK, answer: "A page of bulk changes.", example: bulkChangesView{BulkChanges: []bulkChangeView{exampleBulk(push.BulkRunning)}},
	}, {
		id: "get-bulk-change", method: http.MethodGet, path: bulkPath + "/{id}", tag: tagPushes, scope: push.ScopeRead, serve: h.getBulk, memory: pushBytes,
		summary: "Read a bulk change", description: "Returns the bulk change and its progress, also after its end.",
		status: http.StatusOK, answer: "The bulk change.", example: exampleBulk(push.BulkRunning), problems: []kind{notFound},
	}, {
		id: "list-bulk-change-refused", method: http.MethodGet, path: bulkPath + "/{id}/refused", tag: tagPushes, scope: push.ScopeRead, serve: h.listBulkRefused,
		summary: "List the pushes that a bulk change could not change", description: "Lists the pushes by their send time when the bulk change listed them.",
		query:  &bulkRefusedParams,
		status: http.StatusOK, answer: "A page of pushes.", example: bulkRefusedPageView{Refused: []bulkRefusedView{bulkRefusedViewOf(refused)}}, problems: []kind{notFound},
	}, {
		id: "cancel-bulk-change", method: http.MethodPost, path: bulkPath + "/{id}/cancel", tag: tagPushes, scope: push.ScopeWrite, serve: h.cancelBulk, memory: pushBytes,
		summary:     "Stop a bulk change",
		description: "Pushes that were changed stay changed. A running step of up to 64 pushes is finished first; then the status is canceled. A bulk change that has ended stays as it is; stopping it again changes nothing.",
		status:      http.StatusAccepted, answer: "The current state of the bulk change.", example: exampleBulk(push.BulkCanceling), problems: []kind{notFound},
	}}
}
