package schedules

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/rest"
)

func (h *schedules) routes(s *rest.Spec) []rest.Operation {
	schedule := scheduleViewOf(recurrence.Schedule{
		ID: uuid.MustParse(rest.ExampleID), Name: "Monday digest", Cron: "0 9 * * MON", TimeZone: "Europe/Berlin", CatchUp: recurrence.Skip,
		Pattern: recurrence.Pattern{
			Recipient: "user-42", Channel: "email", Message: json.RawMessage(`{"title": "Your week", "body": "Seven new messages."}`), ExpiresAfter: recurrence.Span(4 * time.Hour),
		},
		Until: time.Date(2027, 6, 30, 0, 0, 0, 0, time.UTC), NextAt: time.Date(2026, 12, 7, 8, 0, 0, 0, time.UTC), CreatedAt: rest.ExampleTime(0), UpdatedAt: rest.ExampleTime(0),
	})
	return []rest.Operation{{
		ID: "create-schedule", Method: http.MethodPost, Path: Path, Tag: Tag, Scope: push.ScopeCampaignsWrite, Serve: h.createSchedule,
		Summary: "Create a schedule",
		Description: "At each time of cron on the clocks of time_zone, a push is submitted: at that moment, not ahead of it, and through the quota like any other push. Each occurrence happens once, and has a run.\n\n" +
			"A time that the clocks skip in spring means the first instant after the gap; a time that occurs twice in autumn means the first, and with * for the hour both.\n\n" +
			"With an Idempotency-Key, the request can be repeated safely for 30 days after the schedule's end: the same key and body return the same schedule.",
		Keyed: true, Body: scheduleFields.Body(s, exampleNewSchedule),
		Status: http.StatusCreated, Answer: "The schedule.", Example: schedule, Problems: []rest.Kind{rest.NotFound, TooMany, rest.KeyReused},
		Finish: func(all map[string]*huma.Response) {
			rest.Etagged("201")(all)
			rest.AddHeader(all["201"], "Location", "The path of the schedule.")
			rest.AddHeader(all["201"], "Idempotency-Replayed", "true if an earlier request with the same Idempotency-Key created the schedule.")
		},
	}, {
		ID: "list-schedules", Method: http.MethodGet, Path: Path, Tag: Tag, Scope: push.ScopeCampaignsRead, Serve: h.listSchedules,
		Summary: "List schedules", Description: "Lists the schedules of the tenant, including ended ones. A page ends early at about 1 MiB: the list continues while there is a next_page_token.",
		Query:  &schedulesParams,
		Status: http.StatusOK, Answer: "A page of schedules.", Example: schedulesView{Schedules: []scheduleView{schedule}},
	}, {
		ID: "get-schedule", Method: http.MethodGet, Path: Path + "/{id}", Tag: Tag, Scope: push.ScopeCampaignsRead, Serve: h.getSchedule, Memory: rest.PushBytes,
		Summary: "Read a schedule", Description: "Returns the schedule, also after its end.",
		Status: http.StatusOK, Answer: "The schedule.", Example: schedule, Problems: []rest.Kind{rest.NotFound}, Finish: rest.Etagged("200"),
	}, {
		ID: "change-schedule", Method: http.MethodPatch, Path: Path + "/{id}", Tag: Tag, Scope: push.ScopeCampaignsWrite, Serve: h.changeSchedule,
		Summary: "Change a schedule",
		Description: "Members that are not sent stay unchanged; push replaces the whole pattern. Occurrences that were due before the answer use the old schedule, later ones the new. " +
			"Occurrences during a pause are skipped.",
		Match: true, Body: scheduleChanges.Body(s, map[string]any{"paused": true}),
		Status: http.StatusOK, Answer: "The schedule.", Example: schedule, Problems: []rest.Kind{rest.NotFound, rest.StaleVersion}, Finish: rest.Etagged("200"),
	}, {
		ID: "delete-schedule", Method: http.MethodDelete, Path: Path + "/{id}", Tag: Tag, Scope: push.ScopeCampaignsWrite, Serve: h.deleteSchedule, Memory: rest.PushBytes,
		Summary: "Delete a schedule", Description: "After the answer, the schedule submits nothing more. Submitted pushes stay, and can be canceled; the runs can no longer be read.",
		Status: http.StatusNoContent, Answer: "The schedule is deleted.", Problems: []rest.Kind{rest.NotFound},
	}, {
		ID: "next-times", Method: http.MethodGet, Path: Path + "/{id}/next", Tag: Tag, Scope: push.ScopeCampaignsRead, Serve: h.nextTimes,
		Summary: "List the next occurrences of a schedule", Description: "Lists the next times of the schedule. A pause is ignored.", Query: &nextParams,
		Status: http.StatusOK, Answer: "The next times.", Example: nextView{[]string{"2026-12-07T08:00:00Z", "2026-12-14T08:00:00Z"}}, Problems: []rest.Kind{rest.NotFound},
	}, {
		ID: "list-runs", Method: http.MethodGet, Path: Path + "/{id}/runs", Tag: Tag, Scope: push.ScopeCampaignsRead, Serve: h.listRuns,
		Summary:     "List the runs of a schedule",
		Description: "Lists the runs, the latest first. Every occurrence has one run, including skipped ones. Runs are kept for as long as ended pushes.",
		Query:       &runsParams,
		Status:      http.StatusOK, Answer: "A page of runs.", Example: runsView{Runs: []runView{
			runViewOf(recurrence.Run{At: rest.ExampleTime(7 * 24 * time.Hour), Outcome: recurrence.Refused, Reason: pushes.QuotaExceeded.Name, Rules: []string{"per-day"}}),
			runViewOf(recurrence.Run{At: rest.ExampleTime(0), Outcome: recurrence.Submitted, Push: uuid.MustParse(rest.ExampleOtherID)}),
		}}, Problems: []rest.Kind{rest.NotFound},
	}}
}
