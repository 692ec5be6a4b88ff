package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

func (h *schedules) routes(s *spec) []operation {
	schedule := scheduleViewOf(push.Schedule{
		ID: uuid.MustParse(exampleID), Name: "Monday digest", Cron: "0 9 * * MON", TimeZone: "Europe/Berlin", CatchUp: push.CatchUpSkip,
		Pattern: push.Pattern{
			Recipient: "user-42", Channel: "email", Message: json.RawMessage(`{"title": "Your week", "body": "Seven new messages."}`), ExpiresAfter: push.Span(4 * time.Hour),
		},
		Until: time.Date(2027, 6, 30, 0, 0, 0, 0, time.UTC), NextAt: time.Date(2026, 12, 7, 8, 0, 0, 0, time.UTC), CreatedAt: exampleTime(0), UpdatedAt: exampleTime(0),
	})
	return []operation{{
		id: "create-schedule", method: http.MethodPost, path: schedulesPath, tag: tagSchedules, scope: push.ScopeCampaignsWrite, serve: h.createSchedule,
		summary: "Create a schedule",
		description: "At each time of cron on the clocks of time_zone, a push is submitted: at that moment, not ahead of it, and through the quota like any other push. Each occurrence happens once, and has a run.\n\n" +
			"A time that the clocks skip in spring means the first instant after the gap; a time that occurs twice in autumn means the first, and with * for the hour both.\n\n" +
			"With an Idempotency-Key, the request can be repeated safely for 30 days after the schedule's end: the same key and body return the same schedule.",
		keyed: true, body: scheduleFields.body(s, exampleNewSchedule),
		status: http.StatusCreated, answer: "The schedule.", example: schedule, problems: []kind{notFound, tooManySchedules, keyReused},
		finish: func(all map[string]*huma.Response) {
			etagged("201")(all)
			addHeader(all["201"], "Location", "The path of the schedule.")
			addHeader(all["201"], "Idempotency-Replayed", "true if an earlier request with the same Idempotency-Key created the schedule.")
		},
	}, {
		id: "list-schedules", method: http.MethodGet, path: schedulesPath, tag: tagSchedules, scope: push.ScopeCampaignsRead, serve: h.listSchedules,
		summary: "List schedules", description: "Lists the schedules of the tenant, including ended ones. A page ends early at about 1 MiB: the list continues while there is a next_page_token.",
		query:  &schedulesParams,
		status: http.StatusOK, answer: "A page of schedules.", example: schedulesView{Schedules: []scheduleView{schedule}},
	}, {
		id: "get-schedule", method: http.MethodGet, path: schedulesPath + "/{id}", tag: tagSchedules, scope: push.ScopeCampaignsRead, serve: h.getSchedule, memory: pushBytes,
		summary: "Read a schedule", description: "Returns the schedule, also after its end.",
		status: http.StatusOK, answer: "The schedule.", example: schedule, problems: []kind{notFound}, finish: etagged("200"),
	}, {
		id: "change-schedule", method: http.MethodPatch, path: schedulesPath + "/{id}", tag: tagSchedules, scope: push.ScopeCampaignsWrite, serve: h.changeSchedule,
		summary: "Change a schedule",
		description: "Members that are not sent stay unchanged; push replaces the whole pattern. Occurrences that were due before the answer use the old schedule, later ones the new. " +
			"Occurrences during a pause are skipped.",
		match: true, body: scheduleChanges.body(s, map[string]any{"paused": true}),
		status: http.StatusOK, answer: "The schedule.", example: schedule, problems: []kind{notFound, staleVersion}, finish: etagged("200"),
	}, {
		id: "delete-schedule", method: http.MethodDelete, path: schedulesPath + "/{id}", tag: tagSchedules, scope: push.ScopeCampaignsWrite, serve: h.deleteSchedule, memory: pushBytes,
		summary: "Delete a schedule", description: "After the answer, the schedule submits nothing more. Submitted pushes stay, and can be canceled; the runs can no longer be read.",
		status: http.StatusNoContent, answer: "The schedule is deleted.", problems: []kind{notFound},
	}, {
		id: "next-times", method: http.MethodGet, path: schedulesPath + "/{id}/next", tag: tagSchedules, scope: push.ScopeCampaignsRead, serve: h.nextTimes,
		summary: "List the next occurrences of a schedule", description: "Lists the next times of the schedule. A pause is ignored.", query: &nextParams,
		status: http.StatusOK, answer: "The next times.", example: nextView{[]string{"2026-12-07T08:00:00Z", "2026-12-14T08:00:00Z"}}, problems: []kind{notFound},
	}, {
		id: "list-runs", method: http.MethodGet, path: schedulesPath + "/{id}/runs", tag: tagSchedules, scope: push.ScopeCampaignsRead, serve: h.listRuns,
		summary:     "List the runs of a schedule",
		description: "Lists the runs, the latest first. Every occurrence has one run, including skipped ones. Runs are kept for as long as ended pushes.",
		query:       &runsParams,
		status:      http.StatusOK, answer: "A page of runs.", example: runsView{Runs: []runView{
			runViewOf(push.Run{At: exampleTime(7 * 24 * time.Hour), Outcome: push.RunRefused, Reason: quotaExceeded.Name, Rules: []string{"per-day"}}),
			runViewOf(push.Run{At: exampleTime(0), Outcome: push.RunSubmitted, Push: uuid.MustParse(exampleOtherID)}),
		}}, problems: []kind{notFound},
	}}
}
