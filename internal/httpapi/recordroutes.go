package httpapi

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

func exampleSend() push.SendRecord {
	at := exampleTime(0)
	return push.SendRecord{
		Push: uuid.MustParse(exampleID), Recipient: "user-42", Channel: "push", Category: "marketing", SendAt: at,
		Send: push.Send{Attempt: 1, StartedAt: at.Add(120 * time.Millisecond), EndedAt: at.Add(340 * time.Millisecond), Outcome: push.Delivered, ProviderMessageID: "m-1"},
	}
}

func (a *api) recordRoutes(s *spec) []operation {
	return []operation{{
		id: "list-sends", method: http.MethodGet, path: sendsPath, tag: tagRecords, scope: push.ScopeRecordsRead, serve: a.listSends,
		summary: "List delivery attempts",
		description: "Lists the attempts of all pushes that have ended, by the time at which they began. Filters can be combined; an empty one counts as absent. " +
			"A page ends early when 10,000 attempts were examined: the list continues while there is a next_page_token.",
		params: sendsParams.parameters(s), status: http.StatusOK, answer: "A page of attempts.", example: sendsView{Sends: []sendRecordView{sendRecordViewOf(exampleSend())}},
	}, {
		id: "export-sends", method: http.MethodGet, path: sendsPath + "/export", tag: tagRecords, scope: push.ScopeRecordsRead, serve: a.exportSends,
		summary: "Export delivery attempts",
		description: "Streams the same attempts, of any number, as CSV with a header line (Accept: text/csv) or as NDJSON (application/x-ndjson, the default). " +
			"The end of the answer is the end of the list; a connection that breaks off is not. Each line ends with a page_token: an export with it, and with the same filters, goes on behind that line.\n\n" +
			"Without until, it is what had begun when the export did. An attempt that was under way then is not in it, and one that ends later may lie before the last line.",
		params: sendsExportParams.parameters(s), status: http.StatusOK, answer: "The attempts, a line each.", example: "", problems: []kind{notAcceptable},
		finish: func(all map[string]*huma.Response) {
			exports(all, sendLines, exportedSend{sendRecordViewOf(exampleSend()), "AAZg9d2FBAA"})
		},
	}}
}
