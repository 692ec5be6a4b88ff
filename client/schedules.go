package client

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// CreateSchedule has a push, or a campaign, made again and again. With the same key and the same schedule, a second call
// returns the schedule of the first; an empty key is a new one.
func (c *Client) CreateSchedule(ctx context.Context, key string, s NewSchedule) (Schedule, error) {
	return ask[Schedule](ctx, c, call{method: http.MethodPost, path: path("schedules"), body: s}.keyed(key))
}

// Schedule reads a schedule.
func (c *Client) Schedule(ctx context.Context, id string) (Schedule, error) {
	return ask[Schedule](ctx, c, call{method: http.MethodGet, path: path("schedules", id), repeat: true})
}

// Schedules lists the schedules.
func (c *Client) Schedules(ctx context.Context) iter.Seq2[Schedule, error] {
	return list(ctx, c, path("schedules"), params{"page_size": pageSize}.values(), func(p SchedulesPage) ([]Schedule, string) { return p.Schedules, p.NextPageToken })
}

// ChangeSchedule changes what is not nil.
func (c *Client) ChangeSchedule(ctx context.Context, id string, to ScheduleChange) (Schedule, error) {
	return c.ChangeScheduleAsOf(ctx, id, time.Time{}, to)
}

// ChangeScheduleAsOf is ChangeSchedule for the schedule as it was when it was last changed then: if somebody else has changed it since,
// it fails with status 412 (stale-version), and nothing changes.
func (c *Client) ChangeScheduleAsOf(ctx context.Context, id string, updatedAt time.Time, to ScheduleChange) (Schedule, error) {
	return ask[Schedule](ctx, c, call{method: http.MethodPatch, path: path("schedules", id), body: to, repeat: true}.asOf(updatedAt))
}

// DeleteSchedule removes a schedule. A repetition after a lost answer fails with status 404.
func (c *Client) DeleteSchedule(ctx context.Context, id string) error {
	return c.tell(ctx, call{method: http.MethodDelete, path: path("schedules", id), repeat: true})
}

// NextTimes are the next n times of a schedule, to a hundred.
func (c *Client) NextTimes(ctx context.Context, id string, n int) ([]time.Time, error) {
	answer, err := ask[struct{ Next []time.Time }](ctx, c, call{method: http.MethodGet, path: path("schedules", id, "next"), query: params{"n": n}.values(), repeat: true})
	return answer.Next, err
}

// Runs lists what became of the times of a schedule, the latest first.
func (c *Client) Runs(ctx context.Context, id string) iter.Seq2[Run, error] {
	return list(ctx, c, path("schedules", id, "runs"), params{"page_size": pageSize}.values(), func(p RunsPage) ([]Run, string) { return p.Runs, p.NextPageToken })
}
