package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/health"
	"github.com/sendquota/sendquota/internal/push"
)

const statusPath = "/v1/status"

// flowStore knows how the pushes of a tenant get on.
type flowStore interface {
	Flow(ctx context.Context, tenant uuid.UUID) (push.Flow, error)
}

// statusView is how things stand for a tenant.
type statusView struct {
	health.Report
	Workers  int                `json:"workers" doc:"Workers that have told of themselves in the last 30 seconds."`
	AsOf     string             `json:"as_of" format:"date-time" doc:"When it was counted, a second ago at most."`
	Waiting  waitingPushesView  `json:"waiting"`
	Attempts recentAttemptsView `json:"attempts"`
	Minutes  []flowMinuteView   `json:"minutes" doc:"The same attempts by the minute in which they began, in the order of time. Minutes without an attempt are left out."`
	Channels []channelBriefView `json:"channels" doc:"The state of each channel for your pushes, in the operator's order. /v1/channels has the details."`
	Complete bool               `json:"complete" doc:"false: you have more than 100,000 pushes that wait, of which so many are counted, or more than 50,000 attempts in an hour, of which the last ones are counted: attempts.since says from when on."`
}

type channelBriefView struct {
	Name  string            `json:"name"`
	State push.ChannelState `json:"state" enum:"working,trying,paused,rejecting,failing,unknown"`
}

type waitingPushesView struct {
	Pushes       int     `json:"pushes" doc:"Pushes of yours that are due, and are not being sent."`
	PutOff       int     `json:"put_off" doc:"Pushes of yours that a rule has put off: their send time has come, and what was sent before leaves no place for them yet. They are not among pushes; held of each says why."`
	OldestSendAt *string `json:"oldest_send_at" format:"date-time" nullable:"true" doc:"The earliest send time of these. null: none waits."`
}

// flowView counts attempts.
type flowView struct {
	Delivered int      `json:"delivered"`
	Refused   int      `json:"refused"`
	Unknown   int      `json:"unknown"`
	LateP50   *float64 `json:"late_ms_p50" nullable:"true" doc:"How late half of the delivered ones were at most, in milliseconds: from the promised send time until the provider had it. null: none was delivered."`
	LateP99   *float64 `json:"late_ms_p99" nullable:"true" doc:"The same of 99 % of them."`
}

type recentAttemptsView struct {
	flowView
	Since string `json:"since" format:"date-time" doc:"All attempts of yours are counted that began from here on, and have ended: an hour, unless there are too many."`
}

type flowMinuteView struct {
	flowView
	At string `json:"at" format:"date-time" doc:"When the minute began."`
}

// TransformSchema adds the counts.
func (*recentAttemptsView) TransformSchema(r huma.Registry, s *huma.Schema) *huma.Schema {
	return withMembersOf[flowView](r, s)
}

// TransformSchema adds the counts.
func (*flowMinuteView) TransformSchema(r huma.Registry, s *huma.Schema) *huma.Schema {
	return withMembersOf[flowView](r, s)
}

func flowViewOf(m push.FlowMinute) flowView {
	v := flowView{Delivered: m.Attempts[push.Delivered], Refused: m.Attempts[push.Refused], Unknown: m.Attempts[push.Unknown]}
	if v.Delivered > 0 {
		v.LateP50, v.LateP99 = new(inMilliseconds(m.LateP50)), new(inMilliseconds(m.LateP99))
	}
	return v
}

func inMilliseconds(d time.Duration) float64 {
	return milliseconds(float64(d) / float64(time.Millisecond))
}

func statusViewOf(r health.Report, f push.Flow, channels channelsView) statusView {
	return statusView{
		Report: r, Workers: f.Workers, AsOf: stamp(f.AsOf), Waiting: waitingPushesView{f.Waiting, f.PutOff, maybe(f.Oldest)}, Attempts: recentAttemptsView{flowViewOf(f.All), stamp(f.Since)},
		Minutes:  viewsOf(f.Minutes, func(m push.FlowMinute) flowMinuteView { return flowMinuteView{flowViewOf(m), stamp(m.At)} }),
		Channels: viewsOf(channels.Channels, func(c channelView) channelBriefView { return channelBriefView{c.Name, c.State} }),
		Complete: f.Complete,
	}
}

func (a *api) countFlow(ctx context.Context, tenant uuid.UUID) (push.Flow, error) {
	return a.cfg.Flows.Flow(ctx, tenant)
}

// status answers with how things stand.
func (a *api) status(c *call) error {
	f, err := a.flows.of(c.r.Context(), c.caller.Tenant)
	if err != nil {
		return err
	}
	channels, err := a.channels.of(c.r.Context(), c.caller.Tenant)
	if err != nil {
		return err
	}
	return a.answer(c.w, http.StatusOK, statusViewOf(a.cfg.Health.Check(c.r.Context()), f, channels))
}

func (a *api) statusRoutes(*spec) []operation {
	minute := push.FlowMinute{
		At: exampleTime(0), Attempts: map[push.Outcome]int{push.Delivered: 980, push.Refused: 3, push.Unknown: 1},
		LateP50: 340 * time.Millisecond, LateP99: 1210 * time.Millisecond,
	}
	return []operation{{
		id: "status", method: http.MethodGet, path: statusPath, tag: tagRecords, scope: push.ScopeRecordsRead, serve: a.status,
		summary: "See how things stand now",
		description: "Whether the API, its servers and the workers do their work, how many of your pushes are due and wait, and how your attempts of the last hour ended: by minute, with how late they were, and the state of each channel. " +
			"How each channel is in detail, /v1/channels tells. Of other tenants nothing is shown.",
		status: http.StatusOK, answer: "How things stand.", example: statusViewOf(health.Report{Status: health.Ready, Postgres: "ok", Redis: "ok", Queue: "ok"}, push.Flow{
			AsOf: exampleTime(30 * time.Second), Waiting: 12, Oldest: exampleTime(20 * time.Second), Workers: 2, Since: exampleTime(30*time.Second - time.Hour),
			All: minute, Minutes: []push.FlowMinute{minute}, Complete: true,
		}, channelsView{Channels: []channelView{{Name: "push", State: push.ChannelWorking}, {Name: "sms", State: push.ChannelRejecting}}}),
	}}
}
