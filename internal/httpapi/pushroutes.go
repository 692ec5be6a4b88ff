package httpapi

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

func (h *pushes) routes(s *spec) []operation {
	retry := examplePush(push.Scheduled)
	retry.RetryOf = exampleOtherID
	return []operation{{
		id: "submit-push", method: http.MethodPost, path: submitPath, tag: tagPushes, scope: push.ScopeWrite, serve: h.submit,
		summary: "Submit a push",
		description: "Books a place in the recipient's quota at send_at, and schedules the push for that time. If there is no place, nothing is booked, and " +
			"the answer names the rules and the next free time; with on_conflict: defer, the push is booked at that time instead.\n\n" +
			"With an Idempotency-Key, the request can be repeated safely for 30 days: the same key and body return the same push.",
		query: &submitParams, keyed: true, body: pushFields.body(s, exampleRequest),
		status: http.StatusCreated, answer: "The push is booked.", example: examplePush(push.Scheduled), finish: booked,
		problems: []kind{quotaExceeded, quietHours, optedOut, tenantCap, keyReused, pushGone},
	}, {
		id: "submit-batch", method: http.MethodPost, path: batchPath, tag: tagPushes, scope: push.ScopeWrite, serve: h.batch,
		summary: "Submit up to 1000 pushes",
		description: "Books many pushes in one transaction. Without atomic, each push is booked if it has a place, and " +
			"has its own result. With atomic: true, all are booked or none: a refusal is a 409 with the results, an invalid push a 422.",
		query: &submitParams, keyed: true, body: batchFields.body(s, exampleBatchRequest),
		status: http.StatusOK, answer: "The result of each push.", example: batchView{Accepted: 1, Refused: 1, Results: []resultView{
			{Index: 0, Status: 201, Push: examplePush(push.Scheduled)},
			{Index: 1, Status: quotaExceeded.Status, Problem: quotaProblemOf(exampleRefusal)},
		}}, finish: func(all map[string]*huma.Response) { bookedBatch(s, all) }, problems: []kind{keyReused, pushGone},
	}, {
		id: "list-pushes", method: http.MethodGet, path: submitPath, tag: tagPushes, scope: push.ScopeRead, serve: h.list,
		summary: "List pushes",
		description: "Lists pushes by send time. Filters can be combined; an empty one counts as absent. A page ends early at about 1 MiB of pushes, or after " +
			"10,000 pushes were examined: the list continues while there is a next_page_token.",
		query: &listParams, status: http.StatusOK, answer: "A page of pushes.", example: pageView{Pushes: []*pushView{examplePush(push.Sent)}, NextPageToken: "AAAAAGkpVQABk6HgWn58f51rPx9_L48BTQ4VmR3uK0qXr6f2t1s8Jw"},
	}, {
		id: "get-push", method: http.MethodGet, path: pushPath, tag: tagPushes, scope: push.ScopeRead, serve: h.get, memory: pushBytes,
		summary: "Read a push", description: "Returns the push and all its delivery attempts.",
		status: http.StatusOK, answer: "The push.", example: examplePush(push.Sent), problems: []kind{notFound},
	}, {
		id: "cancel-push", method: http.MethodPost, path: pushPath + "/cancel", tag: tagPushes, scope: push.ScopeWrite, serve: h.cancel, memory: pushBytes,
		summary: "Cancel a push",
		description: "After a 200, nothing more is delivered, and the place in the quota is free. If an earlier attempt ended with an " +
			"unknown outcome, possibly_delivered is true. Canceling again returns the same.",
		status: http.StatusOK, answer: "The push is canceled.", example: examplePush(push.Canceled), problems: []kind{notFound, notCancelable},
	}, {
		id: "reschedule-push", method: http.MethodPatch, path: pushPath, tag: tagPushes, scope: push.ScopeWrite, serve: h.reschedule,
		summary: "Move a push to another send time",
		description: "The push's own booking does not block its new time. If the new time is refused, the push keeps its old time. An expiry that was not set " +
			"by the caller moves by the same amount. With validate_only, nothing is moved.",
		query: &moveParams, body: moveFields.body(s, map[string]any{"send_at": "2026-12-01T10:00:00Z"}),
		status: http.StatusOK, answer: "The push at its new time.", example: examplePush(push.Scheduled),
		problems: []kind{notFound, quotaExceeded, quietHours, optedOut, tenantCap, notReschedulable},
	}, {
		id: "retry-push", method: http.MethodPost, path: pushPath + "/retry", tag: tagPushes, scope: push.ScopeWrite, serve: h.retry,
		summary: "Retry a push that has failed or expired",
		description: "Books a new push with the same recipient and content, through the quota; its retry_of names the original. " +
			"The original push is not changed. If it was retried before, and that retry was sent or may still be sent, the answer is a 200 with that retry: " +
			"repeating the request never sends two messages. A retry that ended otherwise can be followed by another one. " +
			"If an attempt of the original ended with an unknown outcome, possibly_delivered is true. " +
			"A retry of a campaign's push names the campaign, but does not count in its progress, and is not affected when the campaign is paused or canceled.",
		query: &submitParams, keyed: true, body: retryBody(s),
		status: http.StatusCreated, answer: "The retry is booked.", example: retry, finish: func(all map[string]*huma.Response) { retried(s, all, retry) },
		problems: []kind{notFound, notRetryable, quotaExceeded, quietHours, optedOut, tenantCap, keyReused, pushGone},
	}}
}

func (h *quotas) routes(s *spec) []operation {
	refused, at := exampleRefusal, exampleTime(0)
	held := quota.Booking{ID: uuid.MustParse(exampleID), At: at}
	return []operation{{
		id: "check-quota", method: http.MethodPost, path: "/v1/quota/check", tag: tagQuota, scope: push.ScopeQuota, serve: h.check,
		summary: "Check whether a push has a place", description: "Returns the decision that a submit would get now, and books nothing.",
		body:   checkFields.body(s, map[string]any{"recipient": "user-42", "channel": "push", "category": "marketing", "send_at": "2026-12-01T09:00:00+01:00"}),
		status: http.StatusOK, answer: "Whether there is a place; if not, the reason and the next free time.",
		example: checkView{Violations: violationViews(refused.Violations, refused.SendAt), NextAvailableAt: maybe(refused.Next), PreviousAvailableAt: maybe(refused.Previous)},
	}, {
		id: "recipient-quota", method: http.MethodGet, path: "/v1/recipients/{id}/quota", tag: tagQuota, scope: push.ScopeQuota, serve: h.recipientQuota,
		summary:     "Read a recipient's quota",
		description: "Returns for every rule the number of sends in the fullest window that contains the time, and the number that remains.",
		query:       &quotaParams,
		status:      http.StatusOK, answer: "The recipient's quota.",
		example: recipientView{Recipient: "user-42", At: stamp(at), Rules: usageViews([]quota.Usage{{Rule: exampleRule, Used: 1}}, at), NextAvailableAt: maybe(at.Add(time.Minute))},
	}, {
		id: "recipient-slots", method: http.MethodGet, path: "/v1/recipients/{id}/slots", tag: tagQuota, scope: push.ScopeQuota, serve: h.slots,
		summary:     "Read a recipient's free and blocked times",
		description: "Returns the bookings in [from, until] and the blocked intervals that overlap it. The interval has at most 400 days.",
		query:       &slotsParams,
		status:      http.StatusOK, answer: "The recipient's blocked times and bookings.", example: slotsView{
			Blocked:  blockedViews(quota.Policy{exampleRule}.Blocked(quota.NewTimeline([]quota.Booking{held}), at, at.Add(time.Second))),
			Bookings: []bookingView{{ID: exampleID, SendAt: stamp(at), Status: string(push.Scheduled)}},
		},
	}}
}
