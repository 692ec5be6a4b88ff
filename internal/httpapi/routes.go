package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/assets"
	"github.com/sendquota/sendquota/internal/health"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/ratelimit"
)

// operation is a row of the tables of routes: how it is called, what serves it, and what the documentation says of it.
type operation struct {
	id, method, path     string
	tag, scope           string // no scope: callers need no key
	also                 need   // beside the scope
	serve                func(*call) error
	summary, description string
	ids                  []pathParam // of the path; the table of routes leaves them out
	query                documented  // nil: a query has no parameters
	keyed, match         bool        // whether there are the headers Idempotency-Key and If-Match, as an ETag
	headers              []*huma.Param
	body                 *huma.RequestBody               // nil: with no query either, all of the request is read before the handler
	memory               int64                           // that such a request waits for; 0: it needs little
	status               int                             // of a success
	answer               string                          // says what a success means
	example              any                             // of a success
	problems             []kind                          // those that not every operation with a key has
	finish               func(map[string]*huma.Response) // adds what only this operation answers
}

// need is what some requests of an operation need beside its scope: another one, or, if that is empty, what the words say.
type need struct{ scope, when string }

// documented is the table of a query.
type documented interface{ parameters(*spec) []*huma.Param }

// routes serves every path.
func (a *api) routes() {
	doc := a.huma.OpenAPI()
	s := newSpec(doc.Components)
	for _, o := range a.table(s) {
		o.ids = pathParams(o.path)
		a.handle(&o, s.operation(&o))
	}
	s.complete(doc)
	a.page(metricsPath, a.cfg.Metrics)
	a.page("/", http.RedirectHandler("/docs", http.StatusFound))
	a.page("/openapi.json", assets.Drawn(a.openAPIPage))
	if !a.cfg.BesideConsole {
		a.tryPage()
	}
	a.page("/docs", assets.Drawn(a.docsPage))
	a.router.NotFound(a.notFound)
	a.router.MethodNotAllowed(a.methodNotAllowed)
}

// table returns the rows of all tables of routes.
func (a *api) table(s *spec) []operation {
	return slices.Concat(
		a.pushRoutes(s), a.bulkRoutes(s), a.quotaRoutes(s), a.capRoutes(s), a.availabilityRoutes(s), a.recipientRoutes(s),
		a.importRoutes(s), a.timelineRoutes(s), a.policyRoutes(s), a.limitRoutes(s), a.webhookRoutes(s), a.deliveryRoutes(s),
		a.scheduleRoutes(s), a.campaignRoutes(s), a.campaignActionRoutes(s), a.simulateRoutes(s), a.capacityRoutes(s), a.recordRoutes(s),
		a.statusRoutes(s), a.keyRoutes(s), a.userRoutes(s), a.channelRoutes(s), a.auditRoutes(s), a.auditLogRoutes(s),
		a.failureRoutes(s), a.openRoutes(s),
	)
}

func (a *api) pushRoutes(s *spec) []operation {
	retry := examplePush(push.Scheduled)
	retry.RetryOf = exampleOtherID
	return []operation{{
		id: "submit-push", method: http.MethodPost, path: submitPath, tag: tagPushes, scope: push.ScopeWrite, serve: a.submit,
		summary: "Submit a push",
		description: "Books a place in the recipient's quota at send_at, and schedules the push for that time. If there is no place, nothing is booked, and " +
			"the answer names the rules and the next free time; with on_conflict: defer, the push is booked at that time instead.\n\n" +
			"With an Idempotency-Key, the request can be repeated safely for 30 days: the same key and body return the same push.",
		query: &submitParams, keyed: true, body: pushFields.body(s, exampleRequest),
		status: http.StatusCreated, answer: "The push is booked.", example: examplePush(push.Scheduled), finish: booked,
		problems: []kind{quotaExceeded, quietHours, optedOut, tenantCap, keyReused, pushGone},
	}, {
		id: "submit-batch", method: http.MethodPost, path: batchPath, tag: tagPushes, scope: push.ScopeWrite, serve: a.batch,
		summary: "Submit up to 1000 pushes",
		description: "Books many pushes in one transaction. Without atomic, each push is booked if it has a place, and " +
			"has its own result. With atomic: true, all are booked or none: a refusal is a 409 with the results, an invalid push a 422.",
		query: &submitParams, keyed: true, body: batchFields.body(s, exampleBatchRequest),
		status: http.StatusOK, answer: "The result of each push.", example: batchView{Accepted: 1, Refused: 1, Results: []resultView{
			{Index: 0, Status: 201, Push: examplePush(push.Scheduled)},
			{Index: 1, Status: quotaExceeded.Status, Problem: quotaProblemOf(exampleRefusal)},
		}}, finish: s.bookedBatch, problems: []kind{keyReused, pushGone},
	}, {
		id: "list-pushes", method: http.MethodGet, path: submitPath, tag: tagPushes, scope: push.ScopeRead, serve: a.list,
		summary: "List pushes",
		description: "Lists pushes by send time. Filters can be combined; an empty one counts as absent. A page ends early at about 1 MiB of pushes, or after " +
			"10,000 pushes were examined: the list continues while there is a next_page_token.",
		query: &listParams, status: http.StatusOK, answer: "A page of pushes.", example: pageView{Pushes: []*pushView{examplePush(push.Sent)}, NextPageToken: "AAAAAGkpVQABk6HgWn58f51rPx9_L48BTQ4VmR3uK0qXr6f2t1s8Jw"},
	}, {
		id: "get-push", method: http.MethodGet, path: pushPath, tag: tagPushes, scope: push.ScopeRead, serve: a.get, memory: pushBytes,
		summary: "Read a push", description: "Returns the push and all its delivery attempts.",
		status: http.StatusOK, answer: "The push.", example: examplePush(push.Sent), problems: []kind{notFound},
	}, {
		id: "cancel-push", method: http.MethodPost, path: pushPath + "/cancel", tag: tagPushes, scope: push.ScopeWrite, serve: a.cancel, memory: pushBytes,
		summary: "Cancel a push",
		description: "After a 200, nothing more is delivered, and the place in the quota is free. If an earlier attempt ended with an " +
			"unknown outcome, possibly_delivered is true. Canceling again returns the same.",
		status: http.StatusOK, answer: "The push is canceled.", example: examplePush(push.Canceled), problems: []kind{notFound, notCancelable},
	}, {
		id: "reschedule-push", method: http.MethodPatch, path: pushPath, tag: tagPushes, scope: push.ScopeWrite, serve: a.reschedule,
		summary: "Move a push to another send time",
		description: "The push's own booking does not block its new time. If the new time is refused, the push keeps its old time. An expiry that was not set " +
			"by the caller moves by the same amount. With validate_only, nothing is moved.",
		query: &moveParams, body: moveFields.body(s, map[string]any{"send_at": "2026-12-01T10:00:00Z"}),
		status: http.StatusOK, answer: "The push at its new time.", example: examplePush(push.Scheduled),
		problems: []kind{notFound, quotaExceeded, quietHours, optedOut, tenantCap, notReschedulable},
	}, {
		id: "retry-push", method: http.MethodPost, path: pushPath + "/retry", tag: tagPushes, scope: push.ScopeWrite, serve: a.retry,
		summary: "Retry a push that has failed or expired",
		description: "Books a new push with the same recipient and content, through the quota; its retry_of names the original. " +
			"The original push is not changed. If it was retried before, and that retry was sent or may still be sent, the answer is a 200 with that retry: " +
			"repeating the request never sends two messages. A retry that ended otherwise can be followed by another one. " +
			"If an attempt of the original ended with an unknown outcome, possibly_delivered is true. " +
			"A retry of a campaign's push names the campaign, but does not count in its progress, and is not affected when the campaign is paused or canceled.",
		query: &submitParams, keyed: true, body: retryBody(s),
		status: http.StatusCreated, answer: "The retry is booked.", example: retry, finish: func(all map[string]*huma.Response) { s.retried(all, retry) },
		problems: []kind{notFound, notRetryable, quotaExceeded, quietHours, optedOut, tenantCap, keyReused, pushGone},
	}}
}

func (a *api) quotaRoutes(s *spec) []operation {
	refused, at := exampleRefusal, exampleTime(0)
	held := quota.Booking{ID: uuid.MustParse(exampleID), At: at}
	return []operation{{
		id: "check-quota", method: http.MethodPost, path: "/v1/quota/check", tag: tagQuota, scope: push.ScopeQuota, serve: a.check,
		summary: "Check whether a push has a place", description: "Returns the decision that a submit would get now, and books nothing.",
		body:   checkFields.body(s, map[string]any{"recipient": "user-42", "channel": "push", "category": "marketing", "send_at": "2026-12-01T09:00:00+01:00"}),
		status: http.StatusOK, answer: "Whether there is a place; if not, the reason and the next free time.",
		example: checkView{Violations: violationViews(refused.Violations, refused.SendAt), NextAvailableAt: maybe(refused.Next), PreviousAvailableAt: maybe(refused.Previous)},
	}, {
		id: "recipient-quota", method: http.MethodGet, path: "/v1/recipients/{id}/quota", tag: tagQuota, scope: push.ScopeQuota, serve: a.recipientQuota,
		summary:     "Read a recipient's quota",
		description: "Returns for every rule the number of sends in the fullest window that contains the time, and the number that remains.",
		query:       &quotaParams,
		status:      http.StatusOK, answer: "The recipient's quota.",
		example: recipientView{Recipient: "user-42", At: stamp(at), Rules: usageViews([]quota.Usage{{Rule: exampleRule, Used: 1}}, at), NextAvailableAt: maybe(at.Add(time.Minute))},
	}, {
		id: "recipient-slots", method: http.MethodGet, path: "/v1/recipients/{id}/slots", tag: tagQuota, scope: push.ScopeQuota, serve: a.slots,
		summary:     "Read a recipient's free and blocked times",
		description: "Returns the bookings in [from, until] and the blocked intervals that overlap it. The interval has at most 400 days.",
		query:       &slotsParams,
		status:      http.StatusOK, answer: "The recipient's blocked times and bookings.", example: slotsView{
			Blocked:  blockedViews(quota.Policy{exampleRule}.Blocked(quota.NewTimeline([]quota.Booking{held}), at, at.Add(time.Second))),
			Bookings: []bookingView{{ID: exampleID, SendAt: stamp(at), Status: string(push.Scheduled)}},
		},
	}}
}

func (a *api) limitRoutes(s *spec) []operation {
	rules := []ratelimit.Rule{
		{Limit: ratelimit.Limit{Algorithm: ratelimit.SlidingLog, Limit: 5, Per: time.Minute}},
		{Limit: ratelimit.Limit{Algorithm: ratelimit.TokenBucket, Limit: 100, Per: time.Hour, Burst: 20}},
	}
	taken := takenViewOf(rules, make([]bool, len(rules)), ratelimit.Decision{Allowed: true, Results: []ratelimit.Result{
		{Allowed: true, Limit: 5, Remaining: 4, ResetAfter: time.Minute}, {Allowed: true, Limit: 20, Remaining: 19, ResetAfter: 36 * time.Second},
	}})
	body := takeFields.body(s, exampleTake)
	return []operation{{
		id: "take-limits", method: http.MethodPost, path: "/v1/limits/take", tag: tagLimits, scope: push.ScopeLimits, serve: a.take,
		summary: "Take from speed limits",
		description: "Charges all of the limits, or none: a refused request costs nothing. A refusal is a 200 with `allowed: false`. " +
			"Limits need no setup: the first use creates a limit, and an unused one disappears. " +
			"They use Redis' clock and are exact to the millisecond. Without Redis the answer is a 503; " +
			"the cost may then have been charged.",
		body: body, status: http.StatusOK, answer: "Whether the cost is allowed, and the state of each limit.", example: taken,
	}, {
		id: "refund-limits", method: http.MethodPost, path: "/v1/limits/refund", tag: tagLimits, scope: push.ScopeLimits, serve: a.refund,
		summary: "Give back to speed limits",
		description: "Gives the cost back to each of the limits, at most the amount that is used: a window subtracts it from its count, " +
			"a sliding log or window removes its latest uses, a bucket regains its tokens. Send the same body as the allowed take, and send it soon: " +
			"a limit does not record who used it, so the refund of an expired use gives back another caller's use. " +
			"A refund cannot be repeated safely. After a 503, it may or may not have been made: a second one may give the cost back twice, " +
			"and so allow more than the limit.",
		body: body, status: http.StatusOK, answer: "The state of each limit, as a dry run of the same take returns it.", example: taken,
	}, {
		id: "reset-limits", method: http.MethodPost, path: "/v1/limits/reset", tag: tagLimits, scope: push.ScopeLimits, serve: a.reset,
		summary:     "Reset speed limits",
		description: "Replenishes the limits fully. Limits with another definition or another key stay unchanged. The request can be repeated safely.",
		body:        body, status: http.StatusOK, answer: "The state of each limit, as a dry run of the same take returns it.", example: taken,
	}}
}

func (a *api) webhookRoutes(s *spec) []operation {
	hook := webhookViewOf(push.Webhook{
		ID: uuid.MustParse(exampleID), URL: "https://example.com/hooks/sendquota", Events: []push.Event{push.EventSent, push.EventFailed}, CreatedAt: exampleTime(0),
	}, "")
	made, disabled := hook, hook
	made.Secret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD5NdAxrpTTdk="
	disabled.Status, disabled.Failures, disabled.DisabledReason = "disabled", 42, "42 attempts in a row have failed, since 2026-12-01T08:00:00Z"
	disabled.FailingSince, disabled.DisabledAt = maybe(exampleTime(0)), maybe(exampleTime(72*time.Hour))
	return []operation{{
		id: "create-webhook", method: http.MethodPost, path: webhooksPath, tag: tagWebhooks, scope: push.ScopeHooks, serve: a.createWebhook,
		summary: "Create a webhook",
		description: "From now on, each event that the webhook subscribes to is posted to the URL: signed as in Standard Webhooks, at least once, in order for each push, " +
			"and repeated for a day until the endpoint answers 2xx. The answer has the secret that verifies the signatures. It is shown only once.",
		body:   webhookFields.body(s, map[string]any{"url": "https://example.com/hooks/sendquota", "events": []string{"push.sent", "push.failed"}}),
		status: http.StatusCreated, answer: "The webhook is enabled.", example: made, problems: []kind{tooManyWebhooks, notConfigured},
		finish: func(all map[string]*huma.Response) { addHeader(all["201"], "Location", "The path of the webhook.") },
	}, {
		id: "list-webhooks", method: http.MethodGet, path: webhooksPath, tag: tagWebhooks, scope: push.ScopeHooks, serve: a.listWebhooks,
		summary: "List webhooks", description: "Lists all webhooks of the tenant, oldest first.",
		status: http.StatusOK, answer: "The webhooks.", example: webhooksView{[]webhookView{hook}},
	}, {
		id: "get-webhook", method: http.MethodGet, path: webhooksPath + "/{id}", tag: tagWebhooks, scope: push.ScopeHooks, serve: a.getWebhook,
		summary: "Read a webhook", description: "Returns the webhook, its recent failures, and whether and why it is disabled.",
		status: http.StatusOK, answer: "The webhook.", example: disabled, problems: []kind{notFound},
	}, {
		id: "delete-webhook", method: http.MethodDelete, path: webhooksPath + "/{id}", tag: tagWebhooks, scope: push.ScopeHooks, serve: a.deleteWebhook,
		summary: "Delete a webhook", description: "No new request is sent; one in progress may still arrive. The deliveries of the webhook can no longer be read.",
		status: http.StatusNoContent, answer: "The webhook is deleted.", problems: []kind{notFound},
	}, {
		id: "test-webhook", method: http.MethodPost, path: webhooksPath + "/{id}/test", tag: tagWebhooks, scope: push.ScopeHooks, serve: a.testWebhook,
		summary:     "Send a test event",
		description: "Sends an event of type webhook.test, regardless of the events that the webhook subscribes to. The list of deliveries shows the result.",
		status:      http.StatusAccepted, answer: "The event is being sent.", example: deliveryViewOf(push.Delivery{
			ID: uuid.MustParse(exampleOtherID), Event: push.EventTest, Status: push.DeliveryWaiting, NextAt: exampleTime(0), CreatedAt: exampleTime(0),
			Payload: json.RawMessage(`{"type": "webhook.test", "timestamp": "2026-12-01T08:00:00Z", "data": {"webhook_id": "` + exampleID + `"}}`),
		}), problems: []kind{notFound, webhookDisabled},
	}, {
		id: "rotate-webhook-secret", method: http.MethodPost, path: webhooksPath + "/{id}/rotate-secret", tag: tagWebhooks, scope: push.ScopeHooks, serve: a.rotateSecret,
		summary: "Replace a webhook's secret",
		description: "For 24 hours, requests carry signatures of both the old and the new secret, so that the endpoint can switch. " +
			"Another rotation within that time ends the oldest secret immediately.",
		status: http.StatusOK, answer: "The webhook with its new secret.", example: made, problems: []kind{notFound, notConfigured},
	}, {
		id: "enable-webhook", method: http.MethodPost, path: webhooksPath + "/{id}/enable", tag: tagWebhooks, scope: push.ScopeHooks, serve: a.enableWebhook,
		summary: "Enable a webhook",
		description: "Events that waited when the webhook was disabled are sent now. Events that occurred while it was disabled are not sent. " +
			"Enabling a webhook that is enabled clears its failures.",
		status: http.StatusOK, answer: "The webhook is enabled.", example: hook, problems: []kind{notFound},
	}}
}

func (a *api) deliveryRoutes(s *spec) []operation {
	delivery := deliveryViewOf(push.Delivery{
		ID: uuid.MustParse(exampleOtherID), Push: uuid.MustParse(exampleID), Event: push.EventSent, Status: push.DeliveryWaiting, Attempts: 2,
		NextAt: exampleTime(37 * time.Second), LastStatus: 503, LastError: "the endpoint answered 503 Service Unavailable", CreatedAt: exampleTime(time.Second),
		Payload: json.RawMessage(`{"type": "push.sent", "timestamp": "2026-12-01T08:00:01Z", "data": {"id": "` + exampleID + `", "status": "sent", "recipient": "user-42"}}`),
	})
	return []operation{{
		id: "list-webhook-deliveries", method: http.MethodGet, path: webhooksPath + "/{id}/deliveries", tag: tagWebhooks, scope: push.ScopeHooks, serve: a.listDeliveries,
		summary: "List the deliveries of a webhook",
		description: "Lists past and pending deliveries, newest first. Filters can be combined; an empty one counts as absent. " +
			"Deliveries are kept for a week, or as configured. A page may end early: the list continues while there is a next_page_token.",
		query:  &deliveriesParams,
		status: http.StatusOK, answer: "A page of deliveries.", example: deliveriesView{Deliveries: []deliveryView{delivery}}, problems: []kind{notFound},
	}, {
		id: "replay-webhook-delivery", method: http.MethodPost, path: webhooksPath + "/{id}/deliveries/{delivery}/replay", tag: tagWebhooks, scope: push.ScopeHooks, serve: a.replay, memory: pushBytes,
		summary:     "Send an event again",
		description: "Sends the event now, with the same webhook-id and body, regardless of its status. A delivery that is being sent is not changed.",
		status:      http.StatusAccepted, answer: "The event is being sent.", example: delivery, problems: []kind{notFound, webhookDisabled},
	}, {
		id: "replay-failed-webhook-deliveries", method: http.MethodPost, path: webhooksPath + "/{id}/replay", tag: tagWebhooks, scope: push.ScopeHooks, serve: a.replayFailed,
		summary: "Send failed events again", description: "Sends all events since a time whose delivery has failed, oldest first.",
		body:   sinceFields.body(s, map[string]any{"since": timeExample}),
		status: http.StatusAccepted, answer: "The events are being sent.", example: replayedView{3}, problems: []kind{notFound, webhookDisabled},
	}}
}

func (a *api) openRoutes(s *spec) []operation {
	return []operation{{
		id: "health", method: http.MethodGet, path: healthPath, tag: tagOperations, serve: a.health,
		summary: "Report that the process is alive", status: http.StatusOK, answer: "The process is alive.", example: healthView{Status: "ok"},
	}, {
		id: "ready", method: http.MethodGet, path: readyPath, tag: tagOperations, serve: a.ready,
		summary: "Report whether the process can serve requests",
		status:  http.StatusOK, answer: "The process can serve requests. If Redis is unreachable, or pushes are overdue, the status is degraded.",
		example: health.Report{Status: health.Ready, Postgres: "ok", Redis: "ok", Queue: "ok"},
		finish: func(all map[string]*huma.Response) {
			all["503"] = s.response("Postgres does not answer or cannot be used, or the program is stopping.",
				health.Report{Status: health.Unavailable, Postgres: "not_migrated", Redis: "ok", Queue: "unknown"})
		},
	}}
}
