package httpapi

import (
	"math"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

const statsPath = "/v1/stats"

// maxGroups is how many groups an answer has.
const maxGroups = 10_000

// groupView are the numbers of a group.
type groupView struct {
	Key       string   `json:"key" doc:"The beginning of the hour, for example 2026-12-01T09:00:00Z; the day, for example 2026-12-01; or the channel, category, campaign or rule. Empty: pushes without one."`
	Submitted int64    `json:"submitted" doc:"accepted and refused together."`
	Accepted  int64    `json:"accepted"`
	Deferred  int64    `json:"deferred" doc:"Accepted pushes that were moved to a later time."`
	Refused   int64    `json:"refused" doc:"Pushes refused by the quota, quiet hours, an opt-out or a cap."`
	Sent      int64    `json:"sent"`
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

// groupKey is how a group is called.
func groupKey(by push.StatsBy, at time.Time, key string) string {
	switch by {
	case push.ByHour:
		return stamp(at)
	case push.ByDay:
		return at.Format(time.DateOnly)
	}
	return key
}

func groupViewOf(by push.StatsBy) func(push.Stat) groupView {
	return func(s push.Stat) groupView {
		v := groupView{
			Key: groupKey(by, s.At, s.Key), Submitted: s.Submitted(), Accepted: s.Accepted, Deferred: s.Deferred, Refused: s.Refused,
			Sent: s.Sent, Failed: s.Failed, Expired: s.Expired, Canceled: s.Canceled,
		}
		if s.Sent > 0 {
			v.LateP50, v.LateP99 = new(milliseconds(s.Late.Quantile(0.5))), new(milliseconds(s.Late.Quantile(0.99)))
		}
		return v
	}
}

// milliseconds leaves out the digits that mean nothing.
func milliseconds(ms float64) float64 {
	if ms >= 100 {
		return math.Round(ms)
	}
	return math.Round(100*ms) / 100
}

// statsQuery is which numbers are asked for.
type statsQuery struct {
	by          push.StatsBy
	from, until time.Time
}

var statsParams = table[statsQuery]{fields: []field[statsQuery]{
	row("from", optional, moment(func(q *statsQuery, t time.Time) { q.from = t }), "Begin with the hour of UTC that contains this time. Default: 30 days before until. RFC 3339 with a zone.", timeExample),
	row("until", optional, moment(func(q *statsQuery, t time.Time) { q.until = t }), "End with the hour of UTC that contains this time. Default: now.", "2026-12-08T09:00:00Z"),
	row("group_by", optional, oneOf(func(q *statsQuery, by push.StatsBy) { q.by = by }, push.ByHour, push.ByDay, push.ByChannel, push.ByCategory, push.ByCampaign, push.ByRule).or(string(push.ByDay)),
		"The grouping. By rule, only refusals are counted: once for each rule that refused a push.", nil),
}}

// stats answers with what has become of the tenant's pushes, in numbers.
func (h *stats) stats(c *call) error {
	var q statsQuery
	statsParams.readQuery(c.r, &q, &c.bad)
	if q.until.IsZero() {
		q.until = c.now()
	}
	if q.from.IsZero() {
		q.from = q.until.Add(-30 * 24 * time.Hour)
	}
	q.from, q.until = wholeHours(c, &c.bad, q.from, q.until)
	if err := c.ready(slotsBytes); err != nil {
		return err
	}
	stats, err := h.svc.Stats(c.r.Context(), c.caller.Tenant, push.StatsQuery{By: q.by, From: q.from, Until: q.until})
	if err != nil {
		return err
	}
	return c.compute(func() error {
		shown := stats.Groups[:min(len(stats.Groups), maxGroups)]
		return c.answer(http.StatusOK, statsView{
			Groups: viewsOf(shown, groupViewOf(q.by)), From: stamp(q.from), Until: stamp(q.until), AsOf: stamp(stats.AsOf), Truncated: stats.Cut || len(shown) < len(stats.Groups),
		})
	})
}

// aheadView is what is booked, by hour or day.
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

func aheadGroupOf(by push.StatsBy) func(push.AheadCount) aheadGroup {
	return func(n push.AheadCount) aheadGroup {
		return aheadGroup{groupKey(by, n.At, ""), n.Pushes, viewsOf(n.Parts, func(p push.AheadPart) aheadPart { return aheadPart{p.Key, p.Pushes} })}
	}
}

// aheadQuery is which bookings are asked for.
type aheadQuery struct {
	push.AheadQuery
}

var aheadParams = table[aheadQuery]{fields: []field[aheadQuery]{
	row("from", optional, moment(func(q *aheadQuery, t time.Time) { q.From = t }), "Begin with the hour of UTC that contains this time. Default: now. RFC 3339 with a zone.", timeExample),
	row("until", optional, moment(func(q *aheadQuery, t time.Time) { q.Until = t }), "End with the hour of UTC that contains this time. Default: 31 days after from.", "2027-01-01T00:00:00Z"),
	row("group_by", optional, oneOf(func(q *aheadQuery, by push.StatsBy) { q.By = by }, push.ByHour, push.ByDay).or(string(push.ByDay)), "The grouping.", nil),
	row("split_by", optional, oneOf(func(q *aheadQuery, by push.StatsBy) { q.Split = by }, push.ByChannel, push.ByCategory, push.ByCampaign), "The parts of each group; by hour, only for at most 62 days. Default: no parts are shown.", nil),
	row("channel", optional, named(func(q *aheadQuery, s string) { q.Channel = s }, 0, maxChannel), "Only entries of this channel.", "push"),
	row("category", optional, named(func(q *aheadQuery, s string) { q.Category = s }, 0, maxCategory), "Only entries of this category.", "marketing"),
	row("campaign", optional, identifier(func(q *aheadQuery, id uuid.UUID) { q.Campaign = id }), "Only entries of this campaign.", exampleID),
}}

// ahead answers with how many pushes are booked ahead.
func (h *stats) ahead(c *call) error {
	var q aheadQuery
	aheadParams.readQuery(c.r, &q, &c.bad)
	if q.From.IsZero() {
		q.From = c.now()
	}
	if q.Until.IsZero() {
		q.Until = q.From.Add(31 * 24 * time.Hour)
	}
	q.From, q.Until = wholeHours(c, &c.bad, q.From, q.Until)
	if spanRead(&c.bad) && !c.bad.has("query.group_by") && q.Split != "" && q.By == push.ByHour && q.Until.Sub(q.From) > maxSplitHours {
		badParameter(&c.bad, "split_by", "must be left out with group_by=hour and more than 62 days", string(q.Split))
	}
	if err := c.ready(pageBytes); err != nil {
		return err
	}
	counts, err := h.svc.Ahead(c.r.Context(), c.caller.Tenant, q.AheadQuery)
	if err != nil {
		return err
	}
	return c.compute(func() error {
		return c.answer(http.StatusOK, aheadView{From: stamp(q.From), Until: stamp(q.Until), Groups: viewsOf(counts, aheadGroupOf(q.By))})
	})
}

func (h *stats) routes(s *spec) []operation {
	at := exampleTime(0)
	day := push.Stat{At: at.Truncate(24 * time.Hour), Accepted: 1000, Deferred: 12, Refused: 7, Sent: 980, Failed: 3, Expired: 1, Canceled: 10, Late: push.Lateness{100: 900, 160: 80}}
	return []operation{{
		id: "stats", method: http.MethodGet, path: statsPath, tag: tagRecords, scope: push.ScopeRecordsRead, serve: h.stats,
		summary: "Count pushes",
		description: "Counts the tenant's pushes. submitted, accepted, deferred and refused count in the hour or day of the submit; sent, failed, expired and canceled in the hour or day of the end. " +
			"Replays and validate_only do not count. A refusal by two rules counts for each of them when grouped by rule, and once in other groups. Hours are kept for 400 days, days permanently. The time has at most 400 days.",
		query: &statsParams, status: http.StatusOK, answer: "The numbers.",
		example: statsView{Groups: []groupView{groupViewOf(push.ByDay)(day)}, From: stamp(day.At), Until: stamp(day.At.Add(24 * time.Hour)), AsOf: stamp(day.At.Add(30 * time.Hour))},
	}, {
		id: "ahead", method: http.MethodGet, path: statsPath + "/ahead", tag: tagRecords, scope: push.ScopeRecordsRead, serve: h.ahead,
		summary:     "Count the pushes booked ahead",
		description: "Counts the pushes that have not ended by send time, for a calendar. The counts are exact at the moment of the answer. The time has at most 400 days.",
		query:       &aheadParams, status: http.StatusOK, answer: "The number of booked pushes.",
		example: aheadView{Groups: []aheadGroup{{"2026-12-01", 1200, []aheadPart{{"push", 900}, {"sms", 300}}}, {"2026-12-02", 340, []aheadPart{{"push", 340}}}}, From: stamp(at), Until: stamp(at.Add(31 * 24 * time.Hour))},
	}}
}
