package records

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/stats"
)

const failuresPath = "/v1/failures"

// FailureStore groups failed and expired pushes.
type FailureStore interface {
	Failures(ctx context.Context, tenant uuid.UUID, q stats.FailureQuery) (stats.Failures, error)
}

// failureGroupView is a group of pushes that ended for the same reason.
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

func failureGroupViewOf(g stats.FailureGroup) failureGroupView {
	return failureGroupView{g.Status, g.Channel, g.Reason, g.Pushes, rest.Stamp(g.First), rest.Stamp(g.Last), g.PossiblyDelivered, g.Retried, g.Retries}
}

var failuresParams = rest.Table[stats.FailureQuery]{Fields: []rest.Field[stats.FailureQuery]{
	rest.Row("from", rest.Optional, rest.Moment(func(q *stats.FailureQuery, t time.Time) { q.From = t }), "Only pushes with a send time at or after this. Default: 7 days before until. RFC 3339 with a zone.", rest.TimeExample),
	rest.Row("until", rest.Optional, rest.Moment(func(q *stats.FailureQuery, t time.Time) { q.Until = t }), "Only pushes with a send time before this. Default: now.", "2026-12-08T09:00:00Z"),
	rest.Row("channel", rest.Optional, rest.Named(func(q *stats.FailureQuery, s string) { q.Channel = s }, 0, pushes.MaxChannel), "Only entries of this channel.", "push"),
	rest.Row("campaign", rest.Optional, rest.Identifier(func(q *stats.FailureQuery, id uuid.UUID) { q.Campaign = id }), "Only entries of this campaign.", rest.ExampleID),
}}

// failures answers with groups of failed and expired pushes.
func (h *failures) failures(c *rest.Call) error {
	var q stats.FailureQuery
	failuresParams.ReadQuery(c.Request, &q, &c.Errors)
	if q.Until.IsZero() {
		q.Until = c.Now().UTC().Add(time.Second)
	}
	if q.From.IsZero() {
		q.From = q.Until.Add(-7 * 24 * time.Hour)
	}
	rest.CheckFrom(c, &c.Errors, q.From, q.Until)
	if err := c.Ready(rest.PageBytes); err != nil {
		return err
	}
	f, err := h.store.Failures(c.Request.Context(), c.Caller.Tenant, q)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, failuresView{rest.ViewsOf(f.Groups, failureGroupViewOf), rest.Stamp(f.Since), rest.Stamp(q.Until), f.Since.Equal(q.From)})
}

func (h *failures) routes(s *rest.Spec) []rest.Operation {
	at := rest.ExampleTime(0)
	example := stats.FailureGroup{Status: push.Failed, Channel: "sms", Reason: "unregistered: not a valid telephone number", Pushes: 12, First: at, Last: at.Add(time.Hour), Retried: 8, Retries: 1}
	return []rest.Operation{{
		ID: "list-failures", Method: http.MethodGet, Path: failuresPath, Tag: TagRecords, Scope: push.ScopeRecordsRead, Serve: h.failures,
		Summary: "List failures by reason",
		Description: "Groups the pushes that have failed or expired by status, channel and reason. Only the latest 100,000 pushes of the time that have failed, expired or were canceled are examined: " +
			"from is the earliest of them. Each push can be retried: POST /v1/pushes/{id}/retry.",
		Query: &failuresParams, Status: http.StatusOK, Answer: "The groups.",
		Example: failuresView{[]failureGroupView{failureGroupViewOf(example)}, rest.Stamp(at.Add(-24 * time.Hour)), rest.Stamp(at.Add(24 * time.Hour)), true},
	}}
}
