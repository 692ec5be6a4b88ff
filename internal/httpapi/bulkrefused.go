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
	SendAt string   `json:"send_at" format:"date-time" doc:"When the bulk change found it."`
	Reason string   `json:"reason"`
	Rules  []string `json:"rules" doc:"The rules, quiet hours or caps that have refused it."`
}

type bulkRefusedPageView struct {
	Refused       []bulkRefusedView `json:"refused" doc:"By the send times that they had."`
	NextPageToken string            `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list."`
}

func bulkRefusedViewOf(p push.BulkPush) bulkRefusedView {
	return bulkRefusedView{p.ID.String(), stamp(p.SendAt), p.Outcome, append([]string{}, p.Rules...)}
}

var bulkRefusedParams = pages[pageParams]()

// listBulkRefused answers with a page of the pushes that a bulk change could not change.
func (a *api) listBulkRefused(c *call) error {
	return list(a, c, &bulkRefusedParams, func(q pageParams, after push.Position) ([]push.BulkPush, *push.Position, error) {
		page, err := a.cfg.BulkChanges.BulkRefused(c.r.Context(), c.caller.Tenant, c.id, after, q.size)
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

func (a *api) bulkRoutes(s *spec) []operation {
	refused := push.BulkPush{ID: uuid.MustParse(exampleOtherID), SendAt: exampleTime(0), Outcome: quotaExceeded.Name, Rules: []string{"per-day"}}
	return []operation{{
		id: "create-bulk-change", method: http.MethodPost, path: bulkPath, tag: tagPushes, scope: push.ScopeWrite, serve: a.createBulk,
		summary: "Cancel or move all pushes that fit a filter",
		description: "The workers cancel or move the pushes one by one, as the single requests would, through the quota: what is refused keeps its time. " +
			"The filter is frozen when the request is accepted: it is about the pushes that are scheduled and fit then. A push that is sent before its turn is not changed, " +
			"and a push that is booked, or moved into the filter, afterwards is not touched. " +
			"Pushes that move to later times are moved from the last to the first, others from the first to the last, so that those of one recipient are not in each other's way.\n\n" +
			"A tenant may have five under way. They can be read for 30 days after their end. With an Idempotency-Key the request can be repeated safely for as long: the same key and body get the same bulk change. " +
			"With validate_only nothing is changed or stored: the answer is a 200 that says how many pushes fit and, for a move, how many of the first 50 would be accepted, each tried alone.",
		query: &submitParams, keyed: true,
		body: bulkFields.body(s, map[string]any{
			"action": "move", "shift": "1h30m", "filter": map[string]any{"category": "marketing", "from": "2026-12-01T08:00:00Z", "until": "2026-12-02T08:00:00Z"},
		}),
		status: http.StatusAccepted, answer: "The bulk change is under way.", example: exampleBulk(push.BulkRunning), problems: []kind{tooManyBulk, keyReused},
		finish: func(all map[string]*huma.Response) {
			all["200"] = s.response("With validate_only: what it would do.", bulkEstimateView{Found: 1200, Sample: &bulkSampleView{50, 49, 1}})
			addHeader(all["202"], "Location", "The path of the bulk change.")
			addHeader(all["202"], "Idempotency-Replayed", "true if an earlier request with the same Idempotency-Key made the bulk change.")
		},
	}, {
		id: "list-bulk-changes", method: http.MethodGet, path: bulkPath, tag: tagPushes, scope: push.ScopeRead, serve: a.listBulk,
		summary: "List bulk changes", description: "Lists those under way, and those that ended in the last 30 days.", query: &bulksParams,
		status: http.StatusOK, answer: "A page of bulk changes.", example: bulkChangesView{BulkChanges: []bulkChangeView{exampleBulk(push.BulkRunning)}},
	}, {
		id: "get-bulk-change", method: http.MethodGet, path: bulkPath + "/{id}", tag: tagPushes, scope: push.ScopeRead, serve: a.getBulk, memory: pushBytes,
		summary: "See how far a bulk change is", description: "Answers with the bulk change, also when it has ended.",
		status: http.StatusOK, answer: "The bulk change.", example: exampleBulk(push.BulkRunning), problems: []kind{notFound},
	}, {
		id: "list-bulk-change-refused", method: http.MethodGet, path: bulkPath + "/{id}/refused", tag: tagPushes, scope: push.ScopeRead, serve: a.listBulkRefused,
		summary: "List the pushes that a bulk change could not change", description: "By the send times that they had when the bulk change found them.",
		query:  &bulkRefusedParams,
		status: http.StatusOK, answer: "A page of pushes.", example: bulkRefusedPageView{Refused: []bulkRefusedView{bulkRefusedViewOf(refused)}}, problems: []kind{notFound},
	}, {
		id: "cancel-bulk-change", method: http.MethodPost, path: bulkPath + "/{id}/cancel", tag: tagPushes, scope: push.ScopeWrite, serve: a.cancelBulk, memory: pushBytes,
		summary:     "Stop a bulk change",
		description: "What it has changed stays changed. A step of up to 64 pushes may be under way, and is carried to its end: then it is canceled. One that has ended stays as it is; stopping it again changes nothing.",
		status:      http.StatusAccepted, answer: "The bulk change as it is now.", example: exampleBulk(push.BulkCanceling), problems: []kind{notFound},
	}}
}
