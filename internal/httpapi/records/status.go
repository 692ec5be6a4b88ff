package records

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/health"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/stats"
)

const statusPath = "/v1/status"

// FlowStore reads the recent attempts and the waiting pushes of a tenant.
type FlowStore interface {
	Flow(ctx context.Context, tenant uuid.UUID) (stats.Flow, error)
}

// statusView is the current status of a tenant.
type statusView struct {
	health.Report
	Workers  int                `json:"workers" doc:"Workers that have reported in the last 30 seconds."`
	AsOf     string             `json:"as_of" format:"date-time" doc:"The time of the count: at most a second ago, or ten seconds if you have so many pushes that counting takes long."`
	Waiting  waitingPushesView  `json:"waiting"`
	Attempts recentAttemptsView `json:"attempts"`
	Minutes  []flowMinuteView   `json:"minutes" doc:"The same attempts by the minute of their beginning, in order of time. Minutes without an attempt are left out."`
	Channels []channelBriefView `json:"channels" doc:"The state of each channel for your pushes, in the operator's order. /v1/channels has the details."`
	Complete bool               `json:"complete" doc:"false: you have more than 100,000 waiting pushes, and counting stopped there; or more than 50,000 attempts in an hour, and only the last ones since attempts.since are counted."`
}

type channelBriefView struct {
	Name    string              `json:"name"`
	State   channelhealth.State `json:"state" enum:"working,trying,paused,rejecting,failing,unknown" doc:"How the provider answers."`
	Problem *string             `json:"problem" nullable:"true" doc:"Why your own channel sends nothing, such as: it is disabled. Its pushes wait. null: nothing is wrong with its settings."`
}

type waitingPushesView struct {
	Pushes       int     `json:"pushes" doc:"Your pushes that are due and are not being sent."`
	PutOff       int     `json:"put_off" doc:"Your pushes that a rule has postponed: their send time has come, but earlier sends leave no place yet. They do not count in pushes; the held member of each push gives the reason."`
	Paused       int     `json:"paused" doc:"Your due pushes that a pause of sending holds (/v1/pauses). They do not count in pushes."`
	OldestSendAt *string `json:"oldest_send_at" format:"date-time" nullable:"true" doc:"The earliest send time of the waiting pushes. null: none waits."`
}

// flowView counts attempts.
type flowView struct {
	Delivered int      `json:"delivered"`
	Refused   int      `json:"refused"`
	Unknown   int      `json:"unknown"`
	LateP50   *float64 `json:"late_ms_p50" nullable:"true" doc:"The median delay of the delivered attempts in milliseconds: from the promised send time until the provider had the push. null: none was delivered."`
	LateP99   *float64 `json:"late_ms_p99" nullable:"true" doc:"The 99th percentile of the same delay."`
}

type recentAttemptsView struct {
	flowView
	Since string `json:"since" format:"date-time" doc:"The beginning of the counted time: an hour ago, or later if there are too many attempts. Your attempts that began at or after this time and have ended are counted."`
}

type flowMinuteView struct {
	flowView
	At string `json:"at" format:"date-time" doc:"The beginning of the minute."`
}

// TransformSchema adds the counts.
func (*recentAttemptsView) TransformSchema(r huma.Registry, s *huma.Schema) *huma.Schema {
	return rest.WithMembersOf[flowView](r, s)
}

// TransformSchema adds the counts.
func (*flowMinuteView) TransformSchema(r huma.Registry, s *huma.Schema) *huma.Schema {
	return rest.WithMembersOf[flowView](r, s)
}

func flowViewOf(m stats.FlowMinute) flowView {
	v := flowView{Delivered: m.Attempts[push.Delivered], Refused: m.Attempts[push.Refused], Unknown: m.Attempts[push.Unknown]}
	if v.Delivered > 0 {
		v.LateP50, v.LateP99 = new(inMilliseconds(m.LateP50)), new(inMilliseconds(m.LateP99))
	}
	return v
}

func inMilliseconds(d time.Duration) float64 {
	return milliseconds(float64(d) / float64(time.Millisecond))
}

func statusViewOf(r health.Report, f stats.Flow, channels channelsView) statusView {
	return statusView{
		Report: r, Workers: f.Workers, AsOf: rest.Stamp(f.AsOf), Waiting: waitingPushesView{f.Waiting, f.PutOff, f.Stopped, rest.MaybeTime(f.Oldest)}, Attempts: recentAttemptsView{flowViewOf(f.All), rest.Stamp(f.Since)},
		Minutes:  rest.ViewsOf(f.Minutes, func(m stats.FlowMinute) flowMinuteView { return flowMinuteView{flowViewOf(m), rest.Stamp(m.At)} }),
		Channels: rest.ViewsOf(channels.Channels, func(c channelView) channelBriefView { return channelBriefView{c.Name, c.State, c.Problem} }),
		Complete: f.Complete,
	}
}

func (h *statuses) count(ctx context.Context, tenant uuid.UUID) (stats.Flow, error) {
	return h.store.Flow(ctx, tenant)
}

// status answers with the current status.
func (h *statuses) status(c *rest.Call) error {
	f, err := h.flows.Of(c.Request.Context(), c.Caller.Tenant)
	if err != nil {
		return err
	}
	channels, err := h.channels.read(c.Request.Context(), c.Caller.Tenant)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, statusViewOf(h.health.Check(c.Request.Context()), f, channels))
}

func (h *statuses) routes(*rest.Spec) []rest.Operation {
	minute := stats.FlowMinute{
		At: rest.ExampleTime(0), Attempts: map[push.Outcome]int{push.Delivered: 980, push.Refused: 3, push.Unknown: 1},
		LateP50: 340 * time.Millisecond, LateP99: 1210 * time.Millisecond,
	}
	return []rest.Operation{{
		ID: "status", Method: http.MethodGet, Path: statusPath, Tag: TagRecords, Scope: push.ScopeRecordsRead, Serve: h.status,
		Summary: "Read the current status",
		Description: "Returns the health of the API, its servers and the workers; the number of your due pushes that wait, and of those that a pause of sending holds; the outcomes and delays of your attempts in the last hour, by minute; and the state of each channel. " +
			"/v1/channels has the details of each channel. Nothing about other tenants is shown.",
		Status: http.StatusOK, Answer: "The current status.", Example: statusViewOf(health.Report{Status: health.Ready, Postgres: "ok", Redis: "ok", Queue: "ok"}, stats.Flow{
			AsOf: rest.ExampleTime(30 * time.Second), Waiting: 12, Oldest: rest.ExampleTime(20 * time.Second), Workers: 2, Since: rest.ExampleTime(30*time.Second - time.Hour),
			All: minute, Minutes: []stats.FlowMinute{minute}, Complete: true,
		}, channelsView{Channels: []channelView{{Name: "push", State: channelhealth.Working}, {Name: "sms", State: channelhealth.Rejecting}}}),
	}}
}
