package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

func (a *api) scheduleRoutes(s *spec) []operation {
	schedule := scheduleViewOf(push.Schedule{
		ID: uuid.MustParse(exampleID), Name: "Monday digest", Cron: "0 9 * * MON", TimeZone: "Europe/Berlin", CatchUp: push.CatchUpSkip,
		Pattern: push.Pattern{
			Recipient: "user-42", Channel: "email", Message: json.RawMessage(`{"title": "Your week", "body": "Seven new messages."}`), ExpiresAfter: push.Span(4 * time.Hour),
		},
		Until: time.Date(2027, 6, 30, 0, 0, 0, 0, time.UTC), NextAt: time.Date(2026, 12, 7, 8, 0, 0, 0, time.UTC), CreatedAt: exampleTime(0), UpdatedAt: exampleTime(0),
	})
	return []operation{{
		id: "create-schedule", method: http.MethodPost, path: schedulesPath, tag: tagSchedules, scope: push.ScopeCampaignsWrite, serve: a.createSchedule,
		summary: "Send a push again and again",
		description: "At each time that cron says on the clocks of time_zone, a push is submitted: then, not ahead, and through the quota like any other. Each occurrence happens once, and has a run.\n\n" +
			"A time that the clocks leave out in spring is the first instant after the gap; one that comes twice in autumn is the first of the two, and with * for the hour both.\n\n" +
			"With an Idempotency-Key the request can be repeated safely for 30 days after the schedule's end: the same key and body get the same schedule.",
		keyed: true, body: scheduleFields.body(s, exampleNewSchedule),
		status: http.StatusCreated, answer: "The schedule.", example: schedule, problems: []kind{notFound, tooManySchedules, keyReused},
		finish: func(all map[string]*huma.Response) {
			etagged("201")(all)
			addHeader(all["201"], "Location", "The path of the schedule.")
			addHeader(all["201"], "Idempotency-Replayed", "true if an earlier request with the same Idempotency-Key made the schedule.")
		},
	}, {
		id: "list-schedules", method: http.MethodGet, path: schedulesPath, tag: tagSchedules, scope: push.ScopeCampaignsRead, serve: a.listSchedules,
		summary: "List schedules", description: "Lists the schedules of the tenant, also those that have ended. A page ends early at about 1 MiB: the list continues while there is a next_page_token.",
		query:  &schedulesParams,
		status: http.StatusOK, answer: "A page of schedules.", example: schedulesView{Schedules: []scheduleView{schedule}},
	}, {
		id: "get-schedule", method: http.MethodGet, path: schedulesPath + "/{id}", tag: tagSchedules, scope: push.ScopeCampaignsRead, serve: a.getSchedule, memory: pushBytes,
		summary: "Read a schedule", description: "Answers with the schedule, also when it has ended.",
		status: http.StatusOK, answer: "The schedule.", example: schedule, problems: []kind{notFound}, finish: etagged("200"),
	}, {
		id: "change-schedule", method: http.MethodPatch, path: schedulesPath + "/{id}", tag: tagSchedules, scope: push.ScopeCampaignsWrite, serve: a.changeSchedule,
		summary: "Change a schedule",
		description: "What is not sent stays as it is; a push replaces the whole pattern. What was due before the answer happens as the schedule was then; what is submitted after it is as the schedule is now. " +
			"Occurrences of the time in which it was paused are skipped.",
		match: true, body: scheduleChanges.body(s, map[string]any{"paused": true}),
		status: http.StatusOK, answer: "The schedule.", example: schedule, problems: []kind{notFound, staleVersion}, finish: etagged("200"),
	}, {
		id: "delete-schedule", method: http.MethodDelete, path: schedulesPath + "/{id}", tag: tagSchedules, scope: push.ScopeCampaignsWrite, serve: a.deleteSchedule, memory: pushBytes,
		summary: "Delete a schedule", description: "After the answer it submits nothing any more. Pushes that it has submitted stay, and can be canceled; its runs cannot be read any more.",
		status: http.StatusNoContent, answer: "The schedule is deleted.", problems: []kind{notFound},
	}, {
		id: "next-times", method: http.MethodGet, path: schedulesPath + "/{id}/next", tag: tagSchedules, scope: push.ScopeCampaignsRead, serve: a.nextTimes,
		summary: "See when a schedule happens next", description: "While it is paused, as if it were not.", query: &nextParams,
		status: http.StatusOK, answer: "The next times.", example: nextView{[]string{"2026-12-07T08:00:00Z", "2026-12-14T08:00:00Z"}}, problems: []kind{notFound},
	}, {
		id: "list-runs", method: http.MethodGet, path: schedulesPath + "/{id}/runs", tag: tagSchedules, scope: push.ScopeCampaignsRead, serve: a.listRuns,
		summary:     "See what became of a schedule's occurrences",
		description: "Every occurrence has one run, the skipped ones as well: the latest first. They are kept for as long as pushes that have ended.",
		query:       &runsParams,
		status:      http.StatusOK, answer: "A page of runs.", example: runsView{Runs: []runView{
			runViewOf(push.Run{At: exampleTime(7 * 24 * time.Hour), Outcome: push.RunRefused, Reason: quotaExceeded.Name, Rules: []string{"per-day"}}),
			runViewOf(push.Run{At: exampleTime(0), Outcome: push.RunSubmitted, Push: uuid.MustParse(exampleOtherID)}),
		}}, problems: []kind{notFound},
	}}
}
