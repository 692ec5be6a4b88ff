package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
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
	SendAt            *string `json:"send_at" format:"date-time" nullable:"true" doc:"The promised send time. null for attempts from before it was recorded."`
	StartedAt         string  `json:"started_at" format:"date-time"`
	EndedAt           *string `json:"ended_at" format:"date-time" nullable:"true"`
	Outcome           *string `json:"outcome" enum:"delivered,refused,unknown" nullable:"true"`
	ProviderMessageID string  `json:"provider_message_id"`
	Error             string  `json:"error"`
}

// exportedSend is an attempt in an export.
type exportedSend struct {
	sendRecordView
	PageToken string `json:"page_token"`
}

var sendColumns = []string{
	"push", "attempt", "recipient", "channel", "category", "campaign", "send_at", "started_at", "ended_at", "outcome", "provider_message_id", "error", "page_token",
}

func (s *exportedSend) cells() []string {
	return []string{
		s.Push, strconv.Itoa(s.Attempt), s.Recipient, s.Channel, s.Category, orBlank(s.Campaign), orBlank(s.SendAt), s.StartedAt, orBlank(s.EndedAt), orBlank(s.Outcome),
		s.ProviderMessageID, s.Error, s.PageToken,
	}
}

// sendLines are the attempts of an export.
var sendLines = exported[exportedSend]{columns: sendColumns, cells: (*exportedSend).cells}

// orBlank is empty for what is not there.
func orBlank(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// maybeID is nil for no id.
func maybeID(id uuid.UUID) *string {
	if id == uuid.Nil {
		return nil
	}
	text := id.String()
	return &text
}

func sendRecordViewOf(s push.SendRecord) sendRecordView {
	v := sendRecordView{
		Push: s.Push.String(), Attempt: s.Attempt, Recipient: s.Recipient, Channel: s.Channel, Category: s.Category, Campaign: maybeID(s.Campaign),
		SendAt: maybe(s.SendAt), StartedAt: stamp(s.StartedAt), EndedAt: maybe(s.EndedAt), ProviderMessageID: s.ProviderMessageID, Error: s.Error,
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

// sendFilter is which attempts are asked for.
type sendFilter struct {
	push.SendFilter
	pageParams
}

var sendFields = []field[sendFilter]{
	{"recipient", optional, text(func(q *sendFilter, s string) { q.Recipient = s }, 0, maxRecipient), "Only this recipient's.", "user-42"},
	{"channel", optional, text(func(q *sendFilter, s string) { q.Channel = s }, 0, maxChannel), "Only those through this channel.", "push"},
	{"category", optional, text(func(q *sendFilter, s string) { q.Category = s }, 0, maxCategory), "Only those of this category.", "marketing"},
	{"campaign", optional, identifier(func(q *sendFilter, id uuid.UUID) { q.Campaign = id }), "Only those of this campaign.", exampleID},
	{"outcome", optional, oneOf(func(q *sendFilter, s push.Outcome) { q.Outcome = s }, push.Delivered, push.Refused, push.Unknown), "Only those with this outcome.", nil},
	{"from", optional, moment(func(q *sendFilter, t time.Time) { q.From = t }), "Only those that did not begin before this. RFC 3339 with a zone.", timeExample},
	{"until", optional, moment(func(q *sendFilter, t time.Time) { q.Until = t }), "Only those that began before this. RFC 3339 with a zone.", timeExample},
	{"page_token", optional, token(func(q *sendFilter, s string) { q.token = s }), "The next_page_token of the page before, or the page_token of an exported line. It goes with the same filters.", nil},
}

var (
	sendsParams = table[sendFilter]{fields: append([]field[sendFilter]{
		{"page_size", optional, integer(func(q *sendFilter, n int) { q.size = n }, 1, maxPageSize).or(defaultPageSize), "How many attempts to answer with, at most.", nil},
	}, sendFields...)}
	sendsExportParams = table[sendFilter]{fields: sendFields}
)

// listName tells lists with other filters apart.
func (q *sendFilter) listName() string {
	return fmt.Sprintf("sends %q %q %q %s %q %s %s", q.Recipient, q.Channel, q.Category, q.Campaign, q.Outcome, stamp(q.From), stamp(q.Until))
}

// sendCursor is a position in a list of attempts, as a page token holds it.
type sendCursor struct {
	StartedAt int64 // Unix microseconds
	Push      uuid.UUID
}

func sendCursorOf(p push.SendPosition) sendCursor { return sendCursor{p.StartedAt.UnixMicro(), p.Push} }

func (c sendCursor) position() push.SendPosition {
	return push.SendPosition{StartedAt: time.UnixMicro(c.StartedAt).UTC(), Push: c.Push}
}

// sendQuery reads which attempts a request asks for, and behind which position.
func (c *call) sendQuery(params *table[sendFilter]) (q sendFilter, after push.SendPosition, err error) {
	var (
		bad    fieldErrors
		cursor sendCursor
	)
	params.readQuery(c.r, &q, &bad)
	readPageToken(q.token, c.caller.Tenant, q.listName, &cursor, &bad)
	return q, cursor.position(), bad.err()
}

// listSends answers with a page of the tenant's attempts, by when they began.
func (a *api) listSends(c *call) error {
	q, after, err := c.sendQuery(&sendsParams)
	if err != nil {
		return err
	}
	if err := c.reserve(pageBytes); err != nil {
		return err
	}
	page, err := a.svc.Sends(c.r.Context(), c.caller.Tenant, q.SendFilter, after, q.size)
	if err != nil {
		return err
	}
	return c.compute(func() error {
		v := sendsView{Sends: viewsOf(page.Sends, sendRecordViewOf)}
		if page.Next != nil {
			v.NextPageToken = pageToken(sendCursorOf(*page.Next), c.caller.Tenant, q.listName())
		}
		return a.answer(c.w, http.StatusOK, v)
	})
}

// exportSends answers with all of them. Each line has the token of what follows it.
func (a *api) exportSends(c *call) error {
	q, after, err := c.sendQuery(&sendsExportParams)
	if err != nil {
		return err
	}
	list := q.listName()
	if q.Until.IsZero() {
		q.Until = a.cfg.Now().UTC() // so that it ends
	}
	x := sendLines
	x.page = func(ctx context.Context) ([]exportedSend, bool, error) {
		page, err := a.svc.Sends(ctx, c.caller.Tenant, q.SendFilter, after, exportPage)
		if err != nil || page.Next == nil {
			return exportedSends(c, page.Sends, list), false, err
		}
		after = *page.Next
		return exportedSends(c, page.Sends, list), true, nil
	}
	return export(a, c, x)
}

func exportedSends(c *call, sends []push.SendRecord, list string) []exportedSend {
	return viewsOf(sends, func(s push.SendRecord) exportedSend {
		position := sendCursorOf(push.SendPosition{StartedAt: s.StartedAt, Push: s.Push})
		return exportedSend{sendRecordViewOf(s), pageToken(position, c.caller.Tenant, list)}
	})
}
