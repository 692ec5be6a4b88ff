package campaigns

import (
	"errors"
	"net/http"
	"time"

	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/zone"
)

// The default and the largest number of recipients that an estimate examines.
const (
	capacitySample     = "1000"
	mostCapacitySample = 5000
)

// capacityView counts the recipients of an audience with a place, by time.
type capacityView struct {
	Recipients int64              `json:"recipients" doc:"All recipients of the audience."`
	Sample     int                `json:"sample" doc:"The number of recipients examined; all numbers below count only these. The sample of an audience is always the same, by a hash of the ids."`
	OptedOut   int                `json:"opted_out" doc:"Recipients in the sample who have opted out: they have no place at any time."`
	Invalid    int                `json:"invalid" doc:"Recipients in the sample with an invalid line."`
	From       string             `json:"from" format:"date-time" doc:"The first hour examined, which has not begun yet."`
	Until      string             `json:"until" format:"date-time" doc:"The end of the last hour."`
	Hours      []capacityHourView `json:"hours" doc:"Each hour, by time."`
	Days       []capacityDayView  `json:"days" doc:"Each day of time_zone, by time."`
}

type capacityHourView struct {
	At   string `json:"at" format:"date-time"`
	Free int    `json:"free" doc:"The number of recipients in the sample with a place if the campaign begins at this time: each at its own second of the spread."`
}

type capacityDayView struct {
	Day  string `json:"day" format:"date"`
	Free int    `json:"free" doc:"The number of recipients in the sample with a place in at least one of the hours that begin on this day."`
}

// capacityQuery selects the time and the sample of an estimate.
type capacityQuery struct {
	from, until time.Time
	sample      int
	zone        string
}

var capacityParams = rest.Table[capacityQuery]{Fields: []rest.Field[capacityQuery]{
	rest.Row("from", rest.Optional, rest.Moment(func(q *capacityQuery, t time.Time) { q.from = t }), "Begin with the hour of UTC that contains this time. Default: now. RFC 3339 with a zone.", rest.TimeExample),
	rest.Row("until", rest.Optional, rest.Moment(func(q *capacityQuery, t time.Time) { q.until = t }), "End with the hour of UTC that contains this time, at most 62 days after from. Default: 31 days after from.", "2026-12-08T09:00:00Z"),
	rest.Row("time_zone", rest.Optional, rest.Text(func(q *capacityQuery, s string) { q.zone = s }, 0, pushes.MaxZone), "The zone of the days, an IANA name. Default: UTC.", "Europe/Berlin"),
	rest.Row("sample", rest.Optional, rest.Integer(func(q *capacityQuery, n int) { q.sample = n }, 1, mostCapacitySample).Or(capacitySample), "The maximum number of recipients to examine.", nil),
}}

// campaignCapacity counts the recipients of a draft with a place, by time. It books nothing.
func (h *simulations) campaignCapacity(c *rest.Call) error {
	var q capacityQuery
	capacityParams.ReadQuery(c.Request, &q, &c.Errors)
	in, err := zone.Load(q.zone)
	if q.zone == "" {
		in, err = time.UTC, nil
	}
	if err != nil {
		rest.BadParameter(&c.Errors, "time_zone", err.Error(), q.zone)
	}
	if q.from.IsZero() {
		q.from = c.Now()
	}
	if q.until.IsZero() {
		q.until = q.from.Add(31 * 24 * time.Hour)
	}
	q.from, q.until = rest.WholeHours(c, &c.Errors, q.from, q.until)
	if rest.SpanRead(&c.Errors) && q.until.Sub(q.from) > rest.MaxSplitHours {
		rest.BadParameter(&c.Errors, "until", "must be at most 62 days after from, "+rest.Stamp(q.from), c.Request.URL.Query().Get("until"))
	}
	if err := c.Ready(simulationBytes); err != nil {
		return err
	}
	place, err := h.turns.Acquire(c.Request.Context(), c.Caller.Tenant, 1)
	if err != nil {
		return err
	}
	defer place.Release()
	found, err := h.simulator.Capacity(c.Writer.Whole, c.Caller.Tenant, c.ID, campaign.CapacityQuery{From: q.from, Until: q.until, Sample: q.sample, Zone: in})
	if errors.Is(err, campaign.ErrNoHour) {
		rest.BadParameter(&c.Errors, "until", err.Error(), c.Request.URL.Query().Get("until"))
		return c.Errors.Err()
	}
	if err != nil {
		return rest.NoSuch("campaign", err)
	}
	return c.Compute(func() error { return c.Answer(http.StatusOK, capacityViewOf(found)) })
}

func capacityViewOf(found *campaign.Capacity) capacityView {
	v := capacityView{
		Recipients: found.Recipients, Sample: found.Sample, OptedOut: found.OptedOut, Invalid: found.Invalid, From: rest.Stamp(found.From), Until: rest.Stamp(found.Until),
		Days: rest.ViewsOf(found.Days, func(d campaign.CapacityDay) capacityDayView {
			return capacityDayView{d.Begin.Format(time.DateOnly), d.Free}
		}),
	}
	for i, free := range found.Free {
		v.Hours = append(v.Hours, capacityHourView{rest.Stamp(found.From.Add(time.Duration(i) * time.Hour)), free})
	}
	return v
}

func (h *simulations) capacityRoutes(s *rest.Spec) []rest.Operation {
	from := rest.ExampleTime(0).Truncate(time.Hour)
	example := capacityViewOf(&campaign.Capacity{
		Recipients: 25_000, Sample: 1000, OptedOut: 40, Invalid: 2, From: from, Until: from.Add(2 * time.Hour), Free: []int{862, 934}, Days: []campaign.CapacityDay{{Begin: from.Truncate(24 * time.Hour), Free: 951}},
	})
	return []rest.Operation{{
		ID: "campaign-capacity", Method: http.MethodGet, Path: Path + "/{id}/capacity", Tag: Tag, Scope: push.ScopeCampaignsRead, Serve: h.campaignCapacity,
		Summary: "Estimate when an audience has places",
		Description: "Returns for each hour and each day how many of a sample of the draft's recipients have a place at their time under the rules and quiet hours. Nothing is booked. " +
			"Caps, latest and on_conflict are not considered; use a simulation for that. A tenant's simulations and estimates run one at a time.",
		Query:  &capacityParams,
		Status: http.StatusOK, Answer: "The number of recipients with a place, by time.", Example: example, Problems: []rest.Kind{rest.NotFound, State},
	}}
}
