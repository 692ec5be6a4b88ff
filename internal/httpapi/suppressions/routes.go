package suppressions

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/httpapi/lists"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/suppression"
)

// exportColumns are the columns of an export.
var exportColumns = []string{"channel", "address", "reason", "until", "at", "push", "page_token"}

// exportedEntry is a suppression in an export.
type exportedEntry struct {
	suppressionView
	PageToken string `json:"page_token"`
}

func (e *exportedEntry) cells() []string {
	return []string{e.Channel, e.Address, string(e.Reason), rest.OrBlank(e.Until), e.At, rest.OrBlank(e.Push), e.PageToken}
}

// exportLines writes the suppressions of an export.
var exportLines = lists.Rows[exportedEntry]{Columns: exportColumns, Cells: (*exportedEntry).cells}

// export streams the suppressions. Each line has the token of the position after it.
func (h *suppressions) export(c *rest.Call) error {
	q, after, list := rest.ReadPage[suppression.Position](c, &exportParams)
	if err := c.Ready(rest.PageBytes); err != nil {
		return err
	}
	x := exportLines
	x.Page = func(ctx context.Context) ([]exportedEntry, bool, error) {
		page, err := h.svc.SuppressedAddresses(ctx, c.Caller.Tenant, q.Filter, after, lists.ExportPage)
		if err != nil {
			return nil, false, err
		}
		rows := make([]exportedEntry, len(page.Entries))
		for i, e := range page.Entries {
			rows[i] = exportedEntry{viewOf(e), rest.SealToken(e.Position(), c.Caller.Tenant, list)}
		}
		if page.Next != nil {
			after = *page.Next
		}
		return rows, page.Next != nil, nil
	}
	return lists.Export(h.exports, c, x)
}

func (h *suppressions) routes(s *rest.Spec) []rest.Operation {
	example := viewOf(suppression.Entry{Channel: "sms", Address: "+819012345678", Reason: suppression.Stop, At: rest.ExampleTime(0), Push: uuid.MustParse(rest.ExampleID)})
	stored := storedSuppressionView{viewOf(suppression.Entry{Channel: "sms", Address: "+819012345678", Reason: suppression.Manual, At: rest.ExampleTime(0)}), 2}
	return []rest.Operation{{
		ID: "put-suppression", Method: http.MethodPut, Path: Path, Tag: Tag, Scope: push.ScopeSuppressionsWrite, Serve: h.put,
		Summary: "Suppress an address",
		Description: "From the answer on, the channel sends nothing to the address: pushes to it are refused with 409 `suppressed`, and the scheduled ones are canceled in the same transaction, " +
			"with the last_error suppressed, so that their places in the quota are free again. A push that is being sent is not tried again. A suppression beats bypass. " +
			"The same channel, address and reason again return the entry with a 200, and set its until. So a request can be repeated safely.",
		Body:   entryFields.Body(s, map[string]any{"channel": "sms", "address": "+819012345678", "reason": "manual", "until": nil}),
		Status: http.StatusCreated, Answer: "The address is suppressed.", Example: stored, Problems: []rest.Kind{rest.NotFound},
		Finish: func(all map[string]*huma.Response) {
			all["200"] = s.Response("There was an entry for this channel, address and reason already.", stored)
		},
	}, {
		ID: "list-suppressions", Method: http.MethodGet, Path: Path, Tag: Tag, Scope: push.ScopeSuppressionsRead, Serve: h.list,
		Summary: "List suppressed addresses", Description: "Lists the suppressed addresses.", Query: &listParams,
		Status: http.StatusOK, Answer: "A page of suppressions.", Example: suppressionsView{Suppressions: []suppressionView{example}},
	}, {
		ID: "delete-suppression", Method: http.MethodDelete, Path: Path, Tag: Tag, Scope: push.ScopeSuppressionsWrite, Serve: h.remove,
		Summary: "Allow an address again", Description: "Removes the entries of an address on a channel, or only the one with a reason. Pushes that were canceled stay canceled.", Query: &namedParams,
		Status: http.StatusNoContent, Answer: "The entries are removed.", Problems: []rest.Kind{rest.NotFound},
	}, {
		ID: "export-suppressions", Method: http.MethodGet, Path: Path + "/export", Tag: Tag, Scope: push.ScopeSuppressionsRead, Serve: h.export,
		Summary: "Export suppressed addresses", Description: "Streams the suppressed addresses as CSV or NDJSON. An import reads the file. " + lists.AboutGuards, Query: &exportParams,
		Status: http.StatusOK, Answer: "The suppressions, one per line.", Example: "", Problems: []rest.Kind{rest.NotAcceptable},
		Finish: func(all map[string]*huma.Response) {
			lists.DocumentExport(all, exportLines, exportedEntry{example, "AAZg9d2FBAA"})
		},
	}, {
		ID: "import-suppressions", Method: http.MethodPost, Path: Path + "/import", Tag: Tag, Scope: push.ScopeSuppressionsWrite, Serve: h.importList,
		Summary: "Import suppressed addresses",
		Description: "Each line of CSV with a header, or of NDJSON, is an entry. There may be any number of lines. The columns are " + strings.Join(importColumns, ", ") +
			"; channel and address are required. Other columns of an export are ignored. The effects are those of single requests. " + lists.AboutLists + " Valid lines are stored even if others have errors. The import can be repeated.",
		Body: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"text/csv":             {Schema: &huma.Schema{Type: huma.TypeString}, Example: json.RawMessage(`"channel,address,reason\nsms,+819012345678,stop\n"`)},
			"application/x-ndjson": {Schema: &huma.Schema{Type: huma.TypeString}, Example: json.RawMessage(`"{\"channel\": \"sms\", \"address\": \"+819012345678\", \"reason\": \"stop\"}\n"`)},
		}},
		Status: http.StatusOK, Answer: "The counts of the lines.",
		Example: suppressionImportView{Rows: 3, Created: 1, Updated: 1, Rejected: 1, Canceled: 2, Errors: []lists.LineFault{{Line: 4, Message: "address: must be a telephone number in E.164 form, such as +4512345678"}}},
	}}
}
