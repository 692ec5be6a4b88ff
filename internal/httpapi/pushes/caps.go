package pushes

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

const (
	capsPath = "/v1/caps"

	// mostCapCounted is the end of counting: a second of Postgres' time on two processors.
	mostCapCounted = 1_000_000
)

// capView is a cap of the tenant and its use.
type capView struct {
	Limit    *int `json:"limit" nullable:"true" doc:"null: no limit."`
	Used     int  `json:"used"`
	Complete bool `json:"complete" doc:"false: counting stopped at used, and more are used."`
}

type capsView struct {
	PendingPushes    capView `json:"pending_pushes" doc:"Pushes that are scheduled or being sent."`
	RecipientsPerDay capView `json:"recipients_per_day" doc:"Recipients of pushes with a send time on the day, each counted once."`
	AudienceBytes    capView `json:"audience_bytes" doc:"Bytes of all stored audiences."`
	Day              string  `json:"day" format:"date" doc:"A day of UTC."`
}

func capViewOf(limit, counted int) capView {
	v := wholeCapView(limit, min(counted, mostCapCounted))
	v.Complete = counted <= mostCapCounted
	return v
}

func capsViewOf(u booking.CapUsage, day booking.Day, audienceBytes capView) capsView {
	return capsView{capViewOf(u.PendingPushes, u.Pending), capViewOf(u.RecipientsPerDay, u.Days[day]), audienceBytes, day.Begin().Format(time.DateOnly)}
}

// wholeCapView shows a cap with its complete use.
func wholeCapView(limit, used int) capView {
	v := capView{Used: used, Complete: true}
	if limit > 0 {
		v.Limit = &limit
	}
	return v
}

// capsQuery is the day of a query.
type capsQuery struct{ day booking.Day }

var capsParams = rest.Table[capsQuery]{Fields: []rest.Field[capsQuery]{
	rest.Row("day", rest.Optional, rest.Scalar(func(q *capsQuery, d booking.Day) { q.day = d }, huma.Schema{Type: huma.TypeString, Format: "date"}, parseDay), "The day of UTC to count recipients for. Default: today.", "2026-12-01"),
}}

// parseDay reads a day. It returns the error as a text, or "".
func parseDay(text string) (booking.Day, string) {
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return 0, "must be a day such as 2026-12-01"
	}
	return booking.DayOf(at), ""
}

// getCaps answers with the tenant's caps.
func (h *caps) getCaps(c *rest.Call) error {
	q := capsQuery{booking.DayOf(c.Now())}
	capsParams.ReadQuery(c.Request, &q, &c.Errors)
	if err := c.Errors.Err(); err != nil {
		return err
	}
	usage, err := h.usage.CapUsage(c.Request.Context(), c.Caller.Tenant, c.Caller.Caps, q.day, mostCapCounted+1)
	if err != nil {
		return err
	}
	limit, used, err := h.audiences.Bytes(c.Request.Context(), c.Caller)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, capsViewOf(usage, q.day, wholeCapView(limit, used)))
}

func (h *caps) routes(s *rest.Spec) []rest.Operation {
	day := booking.DayOf(rest.ExampleTime(0))
	example := booking.CapUsage{Caps: push.Caps{PendingPushes: 100_000}, Pending: 8_213, Days: map[booking.Day]int{day: 1_204}}
	return []rest.Operation{{
		ID: "get-caps", Method: http.MethodGet, Path: capsPath, Tag: TagQuota, Scope: push.ScopeRead, Serve: h.getCaps,
		Summary: "Read your caps and their use",
		Description: "The operator's caps limit the pushes that are scheduled or being sent, the recipients of pushes on one day of UTC, and the bytes of audiences. " +
			"A submit, a batch, a move or an audience beyond a cap is refused with a 409, tenant-cap-exceeded. Up to a million pushes and recipients are counted.",
		Query: &capsParams, Status: http.StatusOK, Answer: "The caps.", Example: capsViewOf(example, day, wholeCapView(10<<30, 73_400_320)),
	}}
}
