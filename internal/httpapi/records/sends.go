package records

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/httpapi/lists"
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/record"
	"github.com/sendquota/sendquota/internal/rest"
)

const sendsPath = "/v1/sends"

// sendRecordView is an attempt in a list.
type sendRecordView struct {
	Push              string  `json:"push" format:"uuid"`
	Attempt           int     `json:"attempt" doc:"1, 2, …"`
	Recipient         string  `json:"recipient"`
	Channel           string  `json:"channel"`
	Category          string  `json:"category"`
	Campaign          *string `json:"campaign" format:"uuid" nullable:"true"`
	SendAt            *string `json:"send_at" format:"date-time" nullable:"true" doc:"The promised send time. null for attempts older than this record."`
	StartedAt         string  `json:"started_at" format:"date-time"`
	LateMs            *int64  `json:"late_ms" nullable:"true" doc:"How long after the promised send time the attempt began, in milliseconds."`
	EndedAt           *string `json:"ended_at" format:"date-time" nullable:"true"`
	Outcome           *string `json:"outcome" enum:"delivered,refused,unknown" nullable:"true"`
	ProviderMessageID string  `json:"provider_message_id"`
	Error             string  `json:"error"`
	Segments          *int    `json:"segments" nullable:"true" doc:"The segments of the text message that the attempt sent. null: it was none, or is not known because the attempt was lost."`
}

// exportedSend is an attempt in an export.
type exportedSend struct {
	sendRecordView
	PageToken string `json:"page_token"`
}

var sendColumns = []string{
	"push", "attempt", "recipient", "channel", "category", "campaign", "send_at", "started_at", "ended_at", "outcome", "provider_message_id", "error", "late_ms", "segments", "page_token",
}

func (s *exportedSend) cells() []string {
	return []string{
		s.Push, strconv.Itoa(s.Attempt), s.Recipient, s.Channel, s.Category, rest.OrBlank(s.Campaign), rest.OrBlank(s.SendAt), s.StartedAt, rest.OrBlank(s.EndedAt), rest.OrBlank(s.Outcome),
		s.ProviderMessageID, s.Error, lateCell(s.LateMs), segmentsCell(s.Segments), s.PageToken,
	}
}

func lateCell(ms *int64) string {
	if ms == nil {
		return ""
	}
	return strconv.FormatInt(*ms, 10)
}

func segmentsCell(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

// sendLines writes the attempts of an export.
var sendLines = lists.Rows[exportedSend]{Columns: sendColumns, Cells: (*exportedSend).cells}

func sendRecordViewOf(s record.Send) sendRecordView {
	v := sendRecordView{
		Push: s.Push.String(), Attempt: s.Attempt, Recipient: s.Recipient, Channel: s.Channel, Category: s.Category, Campaign: rest.MaybeID(s.Campaign),
		SendAt: rest.MaybeTime(s.SendAt), StartedAt: rest.Stamp(s.StartedAt), EndedAt: rest.MaybeTime(s.EndedAt), ProviderMessageID: s.ProviderMessageID, Error: s.Error,
	}
	if !s.SendAt.IsZero() {
		v.LateMs = new(s.StartedAt.Sub(s.SendAt).Milliseconds())
	}
	if s.Segments > 0 {
		v.Segments = new(s.Segments)
	}
	if s.Outcome != "" {
		outcome := string(s.Outcome)
		v.Outcome = &outcome
	}
	return v
}

type sendsView struct {
	Sends         []sendRecordView `json:"sends"`
	NextPageToken string           `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list. A page before the end may have fewer attempts than page_size, or none."`
}

// sendFilter selects attempts.
type sendFilter struct {
	record.SendFilter
	rest.PageParams
}

var sendFields = []rest.Field[sendFilter]{
	rest.Row("recipient", rest.Optional, rest.Text(func(q *sendFilter, s string) { q.Recipient = s }, 0, pushes.MaxRecipient), "Only entries of this recipient.", "user-42"),
	rest.Row("channel", rest.Optional, rest.Named(func(q *sendFilter, s string) { q.Channel = s }, 0, pushes.MaxChannel), "Only entries of this channel.", "push"),
	rest.Row("category", rest.Optional, rest.Named(func(q *sendFilter, s string) { q.Category = s }, 0, pushes.MaxCategory), "Only entries of this category.", "marketing"),
	rest.Row("campaign", rest.Optional, rest.Identifier(func(q *sendFilter, id uuid.UUID) { q.Campaign = id }), "Only entries of this campaign.", rest.ExampleID),
	rest.Row("outcome", rest.Optional, rest.OneOf(func(q *sendFilter, s push.Outcome) { q.Outcome = s }, push.Delivered, push.Refused, push.Unknown), "Only attempts with this outcome.", nil),
	rest.Row("from", rest.Optional, rest.Moment(func(q *sendFilter, t time.Time) { q.From = t }), "Only attempts that began at or after this. RFC 3339 with a zone.", rest.TimeExample),
	rest.Row("until", rest.Optional, rest.Moment(func(q *sendFilter, t time.Time) { q.Until = t }), "Only attempts that began before this. RFC 3339 with a zone.", rest.TimeExample),
	rest.PageToken[sendFilter](rest.ExportedToken),
}

var (
	sendsParams       = rest.PagesOf(rest.MaxPageSize, rest.DefaultPageSize, sendFields...)
	sendsExportParams = rest.Table[sendFilter]{Fields: append(slices.Clip(sendFields), lists.DialectParam[sendFilter]())}
)

// listSends answers with a page of the tenant's attempts, by when they began.
func (h *sends) listSends(c *rest.Call) error {
	return rest.List(c, &sendsParams, func(q sendFilter, after record.SendPosition) ([]record.Send, *record.SendPosition, error) {
		page, err := h.svc.Sends(c.Request.Context(), c.Caller.Tenant, q.SendFilter, after, q.Size)
		return page.Sends, page.Next, err
	}, func(all []record.Send, next string) any {
		return sendsView{rest.ViewsOf(all, sendRecordViewOf), next}
	})
}

// exportSends streams the attempts. Each line has the token of the position after it.
func (h *sends) exportSends(c *rest.Call) error {
	q, after, list := rest.ReadPage[record.SendPosition](c, &sendsExportParams)
	if err := c.Ready(rest.PageBytes); err != nil {
		return err
	}
	if q.Until.IsZero() {
		q.Until = c.Now().UTC() // so that the export ends
	}
	x := sendLines
	x.Page = func(ctx context.Context) ([]exportedSend, bool, error) {
		page, err := h.svc.Sends(ctx, c.Caller.Tenant, q.SendFilter, after, lists.ExportPage)
		if err != nil || page.Next == nil {
			return exportedSends(c, page.Sends, list), false, err
		}
		after = *page.Next
		return exportedSends(c, page.Sends, list), true, nil
	}
	return lists.Export(h.exports, c, x)
}

func exportedSends(c *rest.Call, sends []record.Send, list string) []exportedSend {
	return rest.ViewsOf(sends, func(s record.Send) exportedSend {
		position := record.SendPosition{StartedAt: s.StartedAt, Push: s.Push}
		return exportedSend{sendRecordViewOf(s), rest.SealToken(position, c.Caller.Tenant, list)}
	})
}

func (h *sends) routes(s *rest.Spec) []rest.Operation {
	at := rest.ExampleTime(0)
	send := sendRecordViewOf(record.Send{
		Push: uuid.MustParse(rest.ExampleID), Recipient: "user-42", Channel: "push", Category: "marketing", SendAt: at,
		Send: push.Send{Attempt: 1, StartedAt: at.Add(120 * time.Millisecond), EndedAt: at.Add(340 * time.Millisecond), Outcome: push.Delivered, ProviderMessageID: "m-1"},
	})
	return []rest.Operation{{
		ID: "list-sends", Method: http.MethodGet, Path: sendsPath, Tag: TagRecords, Scope: push.ScopeRecordsRead, Serve: h.listSends,
		Summary: "List delivery attempts",
		Description: "Lists the finished attempts of all pushes, by the time of their beginning. Filters can be combined; an empty one counts as absent. " +
			"A page ends early after 10,000 attempts were examined: the list continues while there is a next_page_token.",
		Query: &sendsParams, Status: http.StatusOK, Answer: "A page of attempts.", Example: sendsView{Sends: []sendRecordView{send}},
	}, {
		ID: "export-sends", Method: http.MethodGet, Path: sendsPath + "/export", Tag: TagRecords, Scope: push.ScopeRecordsRead, Serve: h.exportSends,
		Summary: "Export delivery attempts",
		Description: "Streams all matching attempts as CSV with a header line (Accept: text/csv) or as NDJSON (application/x-ndjson, the default). " +
			"If the connection breaks off, the list is incomplete. Each line ends with a page_token: an export with that token and the same filters continues after the line.\n\n" +
			"Without until, the export has the attempts that began before it. An attempt that was in progress then is missing; when it ends later, its place may be before the last exported line.\n\n" + lists.AboutGuards,
		Query: &sendsExportParams, Status: http.StatusOK, Answer: "The attempts, one per line.", Example: "", Problems: []rest.Kind{rest.NotAcceptable},
		Finish: func(all map[string]*huma.Response) {
			lists.DocumentExport(all, sendLines, exportedSend{send, "AAZg9d2FBAA"})
		},
	}}
}
