package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

func (a *api) recordRoutes(s *spec) []operation {
	at := exampleTime(0)
	send := sendRecordViewOf(push.SendRecord{
		Push: uuid.MustParse(exampleID), Recipient: "user-42", Channel: "push", Category: "marketing", SendAt: at,
		Send: push.Send{Attempt: 1, StartedAt: at.Add(120 * time.Millisecond), EndedAt: at.Add(340 * time.Millisecond), Outcome: push.Delivered, ProviderMessageID: "m-1"},
	})
	day := push.Stat{At: at.Truncate(24 * time.Hour), Accepted: 1000, Deferred: 12, Refused: 7, Sent: 980, Failed: 3, Expired: 1, Canceled: 10, Late: push.Lateness{100: 900, 160: 80}}
	return []operation{{
		id: "list-sends", method: http.MethodGet, path: sendsPath, tag: tagRecords, scope: push.ScopeRecordsRead, serve: a.listSends,
		summary: "List delivery attempts",
		description: "Lists the finished attempts of all pushes, by the time of their beginning. Filters can be combined; an empty one counts as absent. " +
			"A page ends early after 10,000 attempts were examined: the list continues while there is a next_page_token.",
		query: &sendsParams, status: http.StatusOK, answer: "A page of attempts.", example: sendsView{Sends: []sendRecordView{send}},
	}, {
		id: "export-sends", method: http.MethodGet, path: sendsPath + "/export", tag: tagRecords, scope: push.ScopeRecordsRead, serve: a.exportSends,
		summary: "Export delivery attempts",
		description: "Streams all matching attempts as CSV with a header line (Accept: text/csv) or as NDJSON (application/x-ndjson, the default). " +
			"If the connection breaks off, the list is incomplete. Each line ends with a page_token: an export with that token and the same filters continues after the line.\n\n" +
			"Without until, the export has the attempts that began before it. An attempt that was in progress then is missing; when it ends later, its place may be before the last exported line.\n\n" + aboutGuards,
		query: &sendsExportParams, status: http.StatusOK, answer: "The attempts, one per line.", example: "", problems: []kind{notAcceptable},
		finish: func(all map[string]*huma.Response) { exports(all, sendLines, exportedSend{send, "AAZg9d2FBAA"}) },
	}, {
		id: "list-refusals", method: http.MethodGet, path: refusalsPath, tag: tagRecords, scope: push.ScopeRecordsRead, serve: a.listRefusals,
		summary: "List refusals",
		description: "Lists refusals, the oldest first: for campaigns, all refusals by the quota, a cap or an opt-out. With recipient, the list includes the last 20 refused single pushes of a week; they are stored in Redis only and are lost with it. " +
			"A page ends early after 10,000 refusals were examined: the list continues while there is a next_page_token.",
		query: &refusalsParams, status: http.StatusOK, answer: "A page of refusals.",
		example: refusalsView{Refusals: []refusalView{refusalViewOf(push.RefusalRecord{
			At: at.Add(-24 * time.Hour), Recipient: "user-42", Channel: "push", Category: "marketing", Campaign: uuid.MustParse(exampleID), RequestedSendAt: at,
			Reason: quotaExceeded.Name, Rules: []string{"per-minute"}, Conflicts: json.RawMessage(`[{"id": "` + exampleOtherID + `", "send_at": "` + stamp(at) + `"}]`),
		})}},
	}, {
		id: "stats", method: http.MethodGet, path: statsPath, tag: tagRecords, scope: push.ScopeRecordsRead, serve: a.stats,
		summary: "Count pushes",
		description: "Counts the tenant's pushes. submitted, accepted, deferred and refused count in the hour or day of the submit; sent, failed, expired and canceled in the hour or day of the end. " +
			"Replays and validate_only do not count. A refusal by two rules counts for each of them when grouped by rule, and once in other groups. Hours are kept for 400 days, days permanently. The time has at most 400 days.",
		query: &statsParams, status: http.StatusOK, answer: "The numbers.",
		example: statsView{Groups: []groupView{groupViewOf(push.ByDay)(day)}, From: stamp(day.At), Until: stamp(day.At.Add(24 * time.Hour)), AsOf: stamp(day.At.Add(30 * time.Hour))},
	}, {
		id: "ahead", method: http.MethodGet, path: statsPath + "/ahead", tag: tagRecords, scope: push.ScopeRecordsRead, serve: a.ahead,
		summary:     "Count the pushes booked ahead",
		description: "Counts the pushes that have not ended by send time, for a calendar. The counts are exact at the moment of the answer. The time has at most 400 days.",
		query:       &aheadParams, status: http.StatusOK, answer: "The number of booked pushes.",
		example: aheadView{Groups: []aheadGroup{{"2026-12-01", 1200, []aheadPart{{"push", 900}, {"sms", 300}}}, {"2026-12-02", 340, []aheadPart{{"push", 340}}}}, From: stamp(at), Until: stamp(at.Add(31 * 24 * time.Hour))},
	}}
}
