package pushes

import (
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulk"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

// Operations returns the operations on pushes, bulk changes and quotas.
func Operations(s *rest.Spec, svc *schedule.Service, changes *bulk.Service, audiences *campaign.Service) []rest.Operation {
	return slices.Concat(
		(&pushes{svc, svc, Forms{svc}, svc}).routes(s), (&bulkChanges{changes}).routes(s), (&quotas{svc, Forms{svc}, svc}).routes(s),
		(&caps{svc, audiences}).routes(s), (&quotas{svc, Forms{svc}, svc}).availabilityRoutes(s),
	)
}

func (h *pushes) routes(s *rest.Spec) []rest.Operation {
	retry := examplePush(push.Scheduled)
	retry.RetryOf = rest.ExampleOtherID
	return []rest.Operation{{
		ID: "submit-push", Method: http.MethodPost, Path: submitPath, Tag: TagPushes, Scope: push.ScopeWrite, Serve: h.submit,
		Summary: "Submit a push",
		Description: "Books a place in the recipient's quota at send_at, and schedules the push for that time. If there is no place, nothing is booked, and " +
			"the answer names the rules and the next free time; with on_conflict: defer, the push is booked at that time instead.\n\n" +
			"With an Idempotency-Key, the request can be repeated safely for 30 days: the same key and body return the same push.",
		Query: &submitParams, Keyed: true, Body: PushFields.Body(s, exampleRequest),
		Status: http.StatusCreated, Answer: "The push is booked.", Example: examplePush(push.Scheduled), Finish: booked,
		Problems: []rest.Kind{QuotaExceeded, QuietHours, OptedOut, Suppressed, TenantCap, rest.KeyReused, PushGone},
	}, {
		ID: "submit-batch", Method: http.MethodPost, Path: batchPath, Tag: TagPushes, Scope: push.ScopeWrite, Serve: h.batch,
		Summary: "Submit up to 1000 pushes",
		Description: "Books many pushes in one transaction. Without atomic, each push is booked if it has a place, and " +
			"has its own result. With atomic: true, all are booked or none: a refusal is a 409 with the results, an invalid push a 422.",
		Query: &submitParams, Keyed: true, Body: batchFields.Body(s, exampleBatchRequest),
		Status: http.StatusOK, Answer: "The result of each push.", Example: batchView{Accepted: 1, Refused: 1, Results: []resultView{
			{Index: 0, Status: 201, Push: examplePush(push.Scheduled)},
			{Index: 1, Status: QuotaExceeded.Status, Problem: quotaProblemOf(exampleRefusal)},
		}}, Finish: func(all map[string]*huma.Response) { bookedBatch(s, all) }, Problems: []rest.Kind{rest.KeyReused, PushGone},
	}, {
		ID: "list-pushes", Method: http.MethodGet, Path: submitPath, Tag: TagPushes, Scope: push.ScopeRead, Serve: h.list,
		Summary: "List pushes",
		Description: "Lists pushes by send time. Filters can be combined; an empty one counts as absent. A page ends early at about 1 MiB of pushes, or after " +
			"10,000 pushes were examined: the list continues while there is a next_page_token.",
		Query: &listParams, Status: http.StatusOK, Answer: "A page of pushes.", Example: pageView{Pushes: []*pushView{examplePush(push.Sent)}, NextPageToken: "AAAAAGkpVQABk6HgWn58f51rPx9_L48BTQ4VmR3uK0qXr6f2t1s8Jw"},
	}, {
		ID: "get-push", Method: http.MethodGet, Path: PushPath, Tag: TagPushes, Scope: push.ScopeRead, Serve: h.get, Memory: rest.PushBytes,
		Summary: "Read a push", Description: "Returns the push and all its delivery attempts.",
		Status: http.StatusOK, Answer: "The push.", Example: examplePush(push.Sent), Problems: []rest.Kind{rest.NotFound},
	}, {
		ID: "cancel-push", Method: http.MethodPost, Path: PushPath + "/cancel", Tag: TagPushes, Scope: push.ScopeWrite, Serve: h.cancel, Memory: rest.PushBytes,
		Summary: "Cancel a push",
		Description: "After a 200, nothing more is delivered, and the place in the quota is free. If an earlier attempt ended with an " +
			"unknown outcome, possibly_delivered is true. Canceling again returns the same.",
		Status: http.StatusOK, Answer: "The push is canceled.", Example: examplePush(push.Canceled), Problems: []rest.Kind{rest.NotFound, NotCancelable},
	}, {
		ID: "reschedule-push", Method: http.MethodPatch, Path: PushPath, Tag: TagPushes, Scope: push.ScopeWrite, Serve: h.reschedule,
		Summary: "Move a push to another send time",
		Description: "The push's own booking does not block its new time. If the new time is refused, the push keeps its old time. An expiry that was not set " +
			"by the caller moves by the same amount. With validate_only, nothing is moved.",
		Query: &moveParams, Body: moveFields.Body(s, map[string]any{"send_at": "2026-12-01T10:00:00Z"}),
		Status: http.StatusOK, Answer: "The push at its new time.", Example: examplePush(push.Scheduled),
		Problems: []rest.Kind{rest.NotFound, QuotaExceeded, QuietHours, OptedOut, TenantCap, NotReschedulable},
	}, {
		ID: "retry-push", Method: http.MethodPost, Path: PushPath + "/retry", Tag: TagPushes, Scope: push.ScopeWrite, Serve: h.retry,
		Summary: "Retry a push that has failed or expired",
		Description: "Books a new push with the same recipient and content, through the quota; its retry_of names the original. " +
			"The original push is not changed. If it was retried before, and that retry was sent or may still be sent, the answer is a 200 with that retry: " +
			"repeating the request never sends two messages. A retry that ended otherwise can be followed by another one. " +
			"If an attempt of the original ended with an unknown outcome, possibly_delivered is true. " +
			"A retry of a campaign's push names the campaign, but does not count in its progress, and is not affected when the campaign is paused or canceled.",
		Query: &submitParams, Keyed: true, Body: retryBody(s),
		Status: http.StatusCreated, Answer: "The retry is booked.", Example: retry, Finish: func(all map[string]*huma.Response) { retried(s, all, retry) },
		Problems: []rest.Kind{rest.NotFound, NotRetryable, QuotaExceeded, QuietHours, OptedOut, Suppressed, TenantCap, rest.KeyReused, PushGone},
	}}
}

func (h *quotas) routes(s *rest.Spec) []rest.Operation {
	refused, at := exampleRefusal, rest.ExampleTime(0)
	held := quota.Booking{ID: uuid.MustParse(rest.ExampleID), At: at}
	return []rest.Operation{{
		ID: "check-quota", Method: http.MethodPost, Path: "/v1/quota/check", Tag: TagQuota, Scope: push.ScopeQuota, Serve: h.check,
		Summary: "Check whether a push has a place", Description: "Returns the decision that a submit would get now, and books nothing.",
		Body:   checkFields.Body(s, map[string]any{"recipient": "user-42", "channel": "push", "category": "marketing", "send_at": "2026-12-01T09:00:00+01:00"}),
		Status: http.StatusOK, Answer: "Whether there is a place; if not, the reason and the next free time.",
		Example: checkView{Violations: violationViews(refused.Violations, refused.SendAt), NextAvailableAt: rest.MaybeTime(refused.Next), PreviousAvailableAt: rest.MaybeTime(refused.Previous)},
	}, {
		ID: "recipient-quota", Method: http.MethodGet, Path: "/v1/recipients/{id}/quota", Tag: TagQuota, Scope: push.ScopeQuota, Serve: h.recipientQuota,
		Summary:     "Read a recipient's quota",
		Description: "Returns for every rule the number of sends in the fullest window that contains the time, and the number that remains.",
		Query:       &quotaParams,
		Status:      http.StatusOK, Answer: "The recipient's quota.",
		Example: recipientView{Recipient: "user-42", At: rest.Stamp(at), Rules: usageViews([]quota.Usage{{Rule: exampleRule, Used: 1}}, at), NextAvailableAt: rest.MaybeTime(at.Add(time.Minute))},
	}, {
		ID: "recipient-slots", Method: http.MethodGet, Path: "/v1/recipients/{id}/slots", Tag: TagQuota, Scope: push.ScopeQuota, Serve: h.slots,
		Summary:     "Read a recipient's free and blocked times",
		Description: "Returns the bookings in [from, until] and the blocked intervals that overlap it. The interval has at most 400 days.",
		Query:       &slotsParams,
		Status:      http.StatusOK, Answer: "The recipient's blocked times and bookings.", Example: slotsView{
			Blocked:  blockedViews(quota.Policy{exampleRule}.Blocked(quota.NewTimeline([]quota.Booking{held}), at, at.Add(time.Second))),
			Bookings: []bookingView{{ID: rest.ExampleID, SendAt: rest.Stamp(at), Status: string(push.Scheduled)}},
		},
	}}
}
