package records

import (
	"math"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/stats"
)

const statsPath = "/v1/stats"

// maxGroups is the largest number of groups in an answer.
const maxGroups = 10_000

// groupView has the counts of a group.
type groupView struct {
	Key       string   `json:"key" doc:"The beginning of the hour, for example 2026-12-01T09:00:00Z; the day, for example 2026-12-01; or the channel, category, level, campaign or rule. Empty: pushes without one."`
	Submitted int64    `json:"submitted" doc:"accepted and refused together."`
	Accepted  int64    `json:"accepted"`
	Deferred  int64    `json:"deferred" doc:"Accepted pushes that were moved to a later time."`
	Refused   int64    `json:"refused" doc:"Pushes refused by the quota, quiet hours, an opt-out or a cap."`
	Sent      int64    `json:"sent"`
	Segments  int64    `json:"segments" doc:"The segments of the text messages among the sent pushes: what carriers charge for."`
	Failed    int64    `json:"failed"`
	Expired   int64    `json:"expired"`
	Canceled  int64    `json:"canceled"`
	LateP50   *float64 `json:"late_ms_p50" nullable:"true" doc:"The median delay of the sent pushes in milliseconds, within 2 %: from the promised send time until the provider had the push. null: none was sent."`
	LateP99   *float64 `json:"late_ms_p99" nullable:"true" doc:"The 99th percentile of the same delay."`
}

type statsView struct {
	Groups    []groupView `json:"groups" doc:"The groups by key. Empty groups are left out."`
	From      string      `json:"from" format:"date-time" doc:"The beginning of the first hour that is counted."`
	Until     string      `json:"until" format:"date-time" doc:"The end of the counted time, exclusive."`
	AsOf      string      `json:"as_of" format:"date-time" doc:"The time of the count. Refusals are counted within ten seconds, everything else immediately."`
	Truncated bool        `json:"truncated" doc:"true: there are more than 10,000 groups; request a shorter time."`
}

// groupKey returns the name of a group.
func groupKey(by stats.By, at time.Time, key string) string {
	switch by {
	case stats.ByHour:
		return rest.Stamp(at)
	case stats.ByDay:
		return at.Format(time.DateOnly)
	}
	return key
}

func groupViewOf(by stats.By) func(stats.Group) groupView {
	return func(s stats.Group) groupView {
		v := groupView{
			Key: groupKey(by, s.At, s.Key), Submitted: s.Submitted(), Accepted: s.Accepted, Deferred: s.Deferred, Refused: s.Refused,
			Sent: s.Sent, Segments: s.Segments, Failed: s.Failed, Expired: s.Expired, Canceled: s.Canceled,
		}
		if s.Sent > 0 {
			v.LateP50, v.LateP99 = new(milliseconds(s.Late.Quantile(0.5))), new(milliseconds(s.Late.Quantile(0.99)))
		}
		return v
	}
}

// milliseconds rounds away meaningless digits.
func milliseconds(ms float64) float64 {
	if ms >= 100 {
		return math.Round(ms)
	}
	return math.Round(100*ms) / 100
}

// statsQuery selects counts.
type statsQuery struct {
	by          stats.By
	from, until time.Time
}

var statsParams = rest.Table[statsQuery]{Fields: []rest.Field[statsQuery]{
	rest.Row("from", rest.Optional, rest.Moment(func(q *statsQuery, t time.Time) { q.from = t }), "Begin with the hour of UTC that contains this time. Default: 30 days before until. RFC 3339 with a zone.", rest.TimeExample),
	rest.Row("until", rest.Optional, rest.Moment(func(q *statsQuery, t time.Time) { q.until = t }), "End with the hour of UTC that contains this time. Default: now.", "2026-12-08T09:00:00Z"),
	rest.Row("group_by", rest.Optional, rest.OneOf(func(q *statsQuery, by stats.By) { q.by = by }, stats.ByHour, stats.ByDay, stats.ByChannel, stats.ByCategory, stats.ByLevel, stats.ByCampaign, stats.ByRule).Or(string(stats.ByDay)),
		"The grouping. By rule, only refusals are counted: once for each rule that refused a push.", nil),
}}

// stats answers with counts of the tenant's pushes.
func (h *statistics) stats(c *rest.Call) error {
	var q statsQuery
	statsParams.ReadQuery(c.Request, &q, &c.Errors)
	if q.until.IsZero() {
		q.until = c.Now()
	}
	if q.from.IsZero() {
		q.from = q.until.Add(-30 * 24 * time.Hour)
	}
	q.from, q.until = rest.WholeHours(c, &c.Errors, q.from, q.until)
	if err := c.Ready(rest.SlotsBytes); err != nil {
		return err
	}
	report, err := h.svc.Stats(c.Request.Context(), c.Caller.Tenant, stats.Query{By: q.by, From: q.from, Until: q.until})
	if err != nil {
		return err
	}
	return c.Compute(func() error {
		shown := report.Groups[:min(len(report.Groups), maxGroups)]
		return c.Answer(http.StatusOK, statsView{
			Groups: rest.ViewsOf(shown, groupViewOf(q.by)), From: rest.Stamp(q.from), Until: rest.Stamp(q.until), AsOf: rest.Stamp(report.AsOf), Truncated: report.Cut || len(shown) < len(report.Groups),
		})
	})
}

// aheadView counts booked pushes by hour or day.
type aheadView struct {
	Groups []aheadGroup `json:"groups" doc:"The groups by time. Empty groups are left out."`
	From   string       `json:"from" format:"date-time" doc:"The beginning of the first hour that is counted."`
	Until  string       `json:"until" format:"date-time" doc:"The end of the counted time, exclusive."`
}

type aheadGroup struct {
	Key       string `json:"key" doc:"The beginning of the hour, for example 2026-12-01T09:00:00Z, or the day, for example 2026-12-01."`
	Scheduled int64  `json:"scheduled" doc:"Pushes with a send time in the group that have not ended."`

	Parts []aheadPart `json:"parts,omitempty" doc:"With split_by: the ten largest parts, the largest first. Their sum may be less than scheduled."`
}

type aheadPart struct {
	Key       string `json:"key" doc:"The channel, category or campaign; empty: pushes without one."`
	Scheduled int64  `json:"scheduled"`
}

func aheadGroupOf(by stats.By) func(stats.AheadCount) aheadGroup {
	return func(n stats.AheadCount) aheadGroup {
		return aheadGroup{groupKey(by, n.At, ""), n.Pushes, rest.ViewsOf(n.Parts, func(p stats.AheadPart) aheadPart { return aheadPart{p.Key, p.Pushes} })}
	}
}

// aheadQuery selects booked pushes.
type aheadQuery struct {
	stats.AheadQuery
}

var aheadParams = rest.Table[aheadQuery]{Fields: []rest.Field[aheadQuery]{
	rest.Row("from", rest.Optional, rest.Moment(func(q *aheadQuery, t time.Time) { q.From = t }), "Begin with the hour of UTC that contains this time. Default: now. RFC 3339 with a zone.", rest.TimeExample),
	rest.Row("until", rest.Optional, rest.Moment(func(q *aheadQuery, t time.Time) { q.Until = t }), "End with the hour of UTC that contains this time. Default: 31 days after from.", "2027-01-01T00:00:00Z"),
	rest.Row("group_by", rest.Optional, rest.OneOf(func(q *aheadQuery, by stats.By) { q.By = by }, stats.ByHour, stats.ByDay).Or(string(stats.ByDay)), "The grouping.", nil),
	rest.Row("split_by", rest.Optional, rest.OneOf(func(q *aheadQuery, by stats.By) { q.Split = by }, stats.ByChannel, stats.ByCategory, stats.ByCampaign), "The parts of each group; by hour, only for at most 62 days. Default: no parts are shown.", nil),
	rest.Row("channel", rest.Optional, rest.Named(func(q *aheadQuery, s string) { q.Channel = s }, 0, pushes.MaxChannel), "Only entries of this channel.", "push"),
	rest.Row("category", rest.Optional, rest.Named(func(q *aheadQuery, s string) { q.Category = s }, 0, pushes.MaxCategory), "Only entries of this category.", "marketing"),
	rest.Row("campaign", rest.Optional, rest.Identifier(func(q *aheadQuery, id uuid.UUID) { q.Campaign = id }), "Only entries of this campaign.", rest.ExampleID),
}}

// ahead answers with the number of pushes booked ahead.
func (h *statistics) ahead(c *rest.Call) error {
	var q aheadQuery
	aheadParams.ReadQuery(c.Request, &q, &c.Errors)
	if q.From.IsZero() {
		q.From = c.Now()
	}
	if q.Until.IsZero() {
		q.Until = q.From.Add(31 * 24 * time.Hour)
	}
	q.From, q.Until = rest.WholeHours(c, &c.Errors, q.From, q.Until)
	if rest.SpanRead(&c.Errors) && !c.Errors.Has("query.group_by") && q.Split != "" && q.By == stats.ByHour && q.Until.Sub(q.From) > rest.MaxSplitHours {
		rest.BadParameter(&c.Errors, "split_by", "must be left out with group_by=hour and more than 62 days", string(q.Split))
	}
	if err := c.Ready(rest.PageBytes); err != nil {
		return err
	}
	counts, err := h.svc.Ahead(c.Request.Context(), c.Caller.Tenant, q.AheadQuery)
	if err != nil {
		return err
	}
	return c.Compute(func() error {
		return c.Answer(http.StatusOK, aheadView{From: rest.Stamp(q.From), Until: rest.Stamp(q.Until), Groups: rest.ViewsOf(counts, aheadGroupOf(q.By))})
	})
}

func (h *statistics) routes(s *rest.Spec) []rest.Operation {
	at := rest.ExampleTime(0)
	day := stats.Group{At: at.Truncate(24 * time.Hour), Accepted: 1000, Deferred: 12, Refused: 7, Sent: 980, Failed: 3, Expired: 1, Canceled: 10, Late: stats.Lateness{100: 900, 160: 80}}
	return []rest.Operation{{
		ID: "stats", Method: http.MethodGet, Path: statsPath, Tag: TagRecords, Scope: push.ScopeRecordsRead, Serve: h.stats,
		Summary: "Count pushes",
		Description: "Counts the tenant's pushes. submitted, accepted, deferred and refused count in the hour or day of the submit; sent, failed, expired and canceled in the hour or day of the end. " +
			"Replays and validate_only do not count. A refusal by two rules counts for each of them when grouped by rule, and once in other groups. Hours are kept for 400 days, days permanently. The time has at most 400 days.",
		Query: &statsParams, Status: http.StatusOK, Answer: "The numbers.",
		Example: statsView{Groups: []groupView{groupViewOf(stats.ByDay)(day)}, From: rest.Stamp(day.At), Until: rest.Stamp(day.At.Add(24 * time.Hour)), AsOf: rest.Stamp(day.At.Add(30 * time.Hour))},
	}, {
		ID: "ahead", Method: http.MethodGet, Path: statsPath + "/ahead", Tag: TagRecords, Scope: push.ScopeRecordsRead, Serve: h.ahead,
		Summary:     "Count the pushes booked ahead",
		Description: "Counts the pushes that have not ended by send time, for a calendar. The counts are exact at the moment of the answer. The time has at most 400 days.",
		Query:       &aheadParams, Status: http.StatusOK, Answer: "The number of booked pushes.",
		Example: aheadView{Groups: []aheadGroup{{"2026-12-01", 1200, []aheadPart{{"push", 900}, {"sms", 300}}}, {"2026-12-02", 340, []aheadPart{{"push", 340}}}}, From: rest.Stamp(at), Until: rest.Stamp(at.Add(31 * 24 * time.Hour))},
	}}
}
