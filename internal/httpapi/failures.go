package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

const failuresPath = "/v1/failures"

// failureStore groups what has failed or expired.
type failureStore interface {
	Failures(ctx context.Context, tenant uuid.UUID, q push.FailureQuery) (push.Failures, error)
}

// failureGroupView are pushes that have ended for the same reason.
type failureGroupView struct {
	Status            push.Status `json:"status" enum:"failed,expired"`
	Channel           string      `json:"channel"`
	Reason            string      `json:"reason" doc:"The last_error of the pushes. It begins with unregistered if the provider reports the address as unregistered. GET /v1/pushes lists the pushes by this reason."`
	Pushes            int         `json:"pushes"`
	FirstSendAt       string      `json:"first_send_at" format:"date-time" doc:"The earliest send time of the group."`
	LastSendAt        string      `json:"last_send_at" format:"date-time"`
	PossiblyDelivered int         `json:"possibly_delivered" doc:"Pushes of the group with an attempt of unknown outcome."`
	Retried           int         `json:"retried" doc:"Pushes of the group that were retried, with any result: they stay in the group. Of a chain of retries, only the first push counts."`
	Retries           int         `json:"retries" doc:"Pushes of the group that are retries themselves."`
}

type failuresView struct {
	Failures []failureGroupView `json:"failures" doc:"The groups, the largest first."`
	From     string             `json:"from" format:"date-time" doc:"The first send time that is counted."`
	Until    string             `json:"until" format:"date-time" doc:"The end of the counted time, exclusive."`
	Complete bool               `json:"complete" doc:"false: more than 100,000 pushes of the time have failed, expired or were canceled, and from is later than requested. For the earlier ones, repeat the request with this from as until."`
}

func failureGroupViewOf(g push.FailureGroup) failureGroupView {
	return failureGroupView{g.Status, g.Channel, g.Reason, g.Pushes, stamp(g.First), stamp(g.Last), g.PossiblyDelivered, g.Retried, g.Retries}
}

var failuresParams = table[push.FailureQuery]{fields: []field[push.FailureQuery]{
	row("from", optional, moment(func(q *push.FailureQuery, t time.Time) { q.From = t }), "Only pushes with a send time at or after this. Default: 7 days before until. RFC 3339 with a zone.", timeExample),
	row("until", optional, moment(func(q *push.FailureQuery, t time.Time) { q.Until = t }), "Only pushes with a send time before this. Default: now.", "2026-12-08T09:00:00Z"),
	row("channel", optional, named(func(q *push.FailureQuery, s string) { q.Channel = s }, 0, maxChannel), "Only entries of this channel.", "push"),
	row("campaign", optional, identifier(func(q *push.FailureQuery, id uuid.UUID) { q.Campaign = id }), "Only entries of this campaign.", exampleID),
}}

// failures answers with what has failed or expired, in groups.
func (h *failures) failures(c *call) error {
	var q push.FailureQuery
	failuresParams.readQuery(c.r, &q, &c.bad)
	if q.Until.IsZero() {
		q.Until = c.now().UTC().Add(time.Second)
	}
	if q.From.IsZero() {
		q.From = q.Until.Add(-7 * 24 * time.Hour)
	}
	checkFrom(c, &c.bad, q.From, q.Until)
	if err := c.ready(pageBytes); err != nil {
		return err
	}
	f, err := h.store.Failures(c.r.Context(), c.caller.Tenant, q)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, failuresView{viewsOf(f.Groups, failureGroupViewOf), stamp(f.Since), stamp(q.Until), f.Since.Equal(q.From)})
}

func (h *failures) routes(s *spec) []operation {
	at := exampleTime(0)
	example := push.FailureGroup{Status: push.Failed, Channel: "sms", Reason: "unregistered: not a valid telephone number", Pushes: 12, First: at, Last: at.Add(time.Hour), Retried: 8, Retries: 1}
	return []operation{{
		id: "list-failures", method: http.MethodGet, path: failuresPath, tag: tagRecords, scope: push.ScopeRecordsRead, serve: h.failures,
		summary: "List failures by reason",
		description: "Groups the pushes that have failed or expired by status, channel and reason. Only the latest 100,000 pushes of the time that have failed, expired or were canceled are examined: " +
			"from is the earliest of them. Each push can be retried: POST /v1/pushes/{id}/retry.",
		query: &failuresParams, status: http.StatusOK, answer: "The groups.",
		example: failuresView{[]failureGroupView{failureGroupViewOf(example)}, stamp(at.Add(-24 * time.Hour)), stamp(at.Add(24 * time.Hour)), true},
	}}
}
