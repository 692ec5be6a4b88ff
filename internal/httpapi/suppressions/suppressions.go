// Package suppressions has the operations of the REST API on suppressed addresses.
package suppressions

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/suppression"
)

// The group of these operations in the documentation.
const Tag = "Suppressions"

// Path is the path of the suppressions.
const Path = "/v1/suppressions"

// Service keeps suppressions.
type Service interface {
	Suppress(ctx context.Context, tenant uuid.UUID, entries []suppression.Entry, record bool) ([]suppression.Stored, booking.Canceled, error)
	Unsuppress(ctx context.Context, tenant uuid.UUID, channel, address string, reason suppression.Reason) error
	SuppressedAddresses(ctx context.Context, tenant uuid.UUID, f suppression.Filter, after suppression.Position, limit int) (suppression.Page, error)
	CheckSuppression(tenant uuid.UUID, e *suppression.Entry) invalid.FieldErrors
	imports
}

// imports records imports in the audit log.
type imports interface {
	BeginSuppressionImport(ctx context.Context, tenant uuid.UUID) (auditlog.Position, error)
	EndImport(ctx context.Context, tenant uuid.UUID, at auditlog.Position, created, updated, canceled int) error
}

// suppressions serves suppressions.
type suppressions struct {
	svc     Service
	exports *bulkhead.Bulkhead[uuid.UUID]
}

// Operations returns the operations on suppressions.
func Operations(s *rest.Spec, svc Service, exports *bulkhead.Bulkhead[uuid.UUID]) []rest.Operation {
	return (&suppressions{svc, exports}).routes(s)
}

// suppressionView is a suppression as the API shows it.
type suppressionView struct {
	Channel string             `json:"channel"`
	Address string             `json:"address" doc:"In the form in which addresses are compared: an e-mail address has no name, and its domain is in lower case and in its xn-- form."`
	Reason  suppression.Reason `json:"reason" enum:"hard_bounce,complaint,stop,unregistered,manual" doc:"hard_bounce: the provider reported that the address does not exist. complaint: a message was marked as spam. stop: the owner has answered STOP. unregistered: the provider does not know the device any more. manual: you have added it."`
	At      string             `json:"at" format:"date-time" doc:"When it was stored first."`
	Until   *string            `json:"until" format:"date-time" nullable:"true" doc:"The end; null: it has none."`
	Push    *string            `json:"push" format:"uuid" nullable:"true" doc:"The push that the provider or the owner answered; null: none."`
}

func viewOf(e suppression.Entry) suppressionView {
	return suppressionView{e.Channel, e.Address, e.Reason, rest.Stamp(e.At), rest.MaybeTime(e.Until), rest.MaybeID(e.Push)}
}

// storedSuppressionView is a suppression that was stored, and its effect.
type storedSuppressionView struct {
	suppressionView
	Canceled int `json:"canceled" doc:"The number of scheduled pushes to the address that were canceled."`
}

type suppressionsView struct {
	Suppressions  []suppressionView `json:"suppressions" doc:"By address, channel and reason."`
	NextPageToken string            `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list. A page before the end may have fewer entries than page_size, or none."`
}

// entryFields is a suppression in a request, and a line of NDJSON.
var entryFields = rest.Table[suppression.Entry]{SchemaName: "NewSuppression", Fields: []rest.Field[suppression.Entry]{
	rest.Row("channel", rest.Required, rest.Named(func(e *suppression.Entry, s string) { e.Channel = s }, 1, pushes.MaxChannel), "The channel that sends nothing to the address.", "sms"),
	rest.Row("address", rest.Required, rest.Text(func(e *suppression.Entry, s string) { e.Address = s }, 1, suppression.MaxAddress), "The address, as in `to` of a push.", "+819012345678"),
	rest.Row("reason", rest.Optional, rest.OneOf(func(e *suppression.Entry, r suppression.Reason) { e.Reason = r }, suppression.Reasons...), "Default: manual. An address can have an entry for each reason.", "manual"),
	rest.Row("until", rest.Optional, rest.Moment(func(e *suppression.Entry, t time.Time) { e.Until = t }).OrNull(func(*suppression.Entry) {}),
		"The end, with a zone, in the future. null, the default: it has none.", nil),
}}

// checked completes an entry of a request, and adds the errors that concern more than its form.
func (h *suppressions) checked(tenant uuid.UUID, e *suppression.Entry, now time.Time, found *rest.FieldErrors) {
	if e.Reason == "" {
		e.Reason = suppression.Manual
	}
	if !e.Until.IsZero() && !e.Until.After(now) {
		found.List.Add("until", rest.Stamp(e.Until), "must be in the future; it is now %s", invalid.Now(now))
	}
	if found.Has("channel") || found.Has("address") {
		return
	}
	for _, one := range h.svc.CheckSuppression(tenant, e) {
		if text, ok := one.Value.(string); ok {
			one.Value = rest.Shown(text)
		}
		found.Keep(one)
	}
}

// put stores a suppression.
func (h *suppressions) put(c *rest.Call) error {
	var (
		e     suppression.Entry
		found rest.FieldErrors
	)
	if _, err := c.Object(rest.MaxBody, &c.Errors, func(r *rest.Reader) { entryFields.Read(r, &e, &found) }); err != nil {
		return err
	}
	h.checked(c.Caller.Tenant, &e, c.Now(), &found)
	c.Errors.AddAll("body", found)
	if err := c.Errors.Err(); err != nil {
		return err
	}
	stored, canceled, err := h.svc.Suppress(c.Request.Context(), c.Caller.Tenant, []suppression.Entry{e}, true)
	if err != nil {
		return rest.NoSuch("tenant", err)
	}
	status := http.StatusOK
	if stored[0].Created {
		status = http.StatusCreated
	}
	return c.Answer(status, storedSuppressionView{viewOf(stored[0].Entry), canceled.Pushes})
}

// filter selects suppressions.
type filter struct {
	suppression.Filter
	rest.PageParams
}

var (
	filterFields = []rest.Field[filter]{
		rest.Row("channel", rest.Optional, rest.Named(func(q *filter, s string) { q.Channel = s }, 1, pushes.MaxChannel), "Only entries of this channel.", "sms"),
		rest.Row("address", rest.Optional, rest.Text(func(q *filter, s string) { q.Address = s }, 1, suppression.MaxAddress), "Only entries of this address. Escape it: a + is %2B.", "+819012345678"),
		rest.Row("reason", rest.Optional, rest.OneOf(func(q *filter, r suppression.Reason) { q.Reason = r }, suppression.Reasons...), "Only entries with this reason.", nil),
	}
	listParams   = rest.Pages(filterFields...)
	exportParams = rest.Table[filter]{Fields: append(filterFields[:len(filterFields):len(filterFields)], rest.PageToken[filter](rest.ExportedToken), lists.DialectParam[filter]())}
)

// list answers with a page of the suppressions.
func (h *suppressions) list(c *rest.Call) error {
	return rest.List(c, &listParams, func(q filter, after suppression.Position) ([]suppression.Entry, *suppression.Position, error) {
		page, err := h.svc.SuppressedAddresses(c.Request.Context(), c.Caller.Tenant, q.Filter, after, q.Size)
		return page.Entries, page.Next, err
	}, func(all []suppression.Entry, next string) any {
		return suppressionsView{rest.ViewsOf(all, viewOf), next}
	})
}

// named identifies the entries to remove.
type named struct {
	channel, address string
	reason           suppression.Reason
}

var namedParams = rest.Table[named]{Fields: []rest.Field[named]{
	rest.Row("channel", rest.Required, rest.Named(func(q *named, s string) { q.channel = s }, 1, pushes.MaxChannel), "The channel.", "sms"),
	rest.Row("address", rest.Required, rest.Text(func(q *named, s string) { q.address = s }, 1, suppression.MaxAddress), "The address. Escape it: a + is %2B.", "+819012345678"),
	rest.Row("reason", rest.Optional, rest.OneOf(func(q *named, r suppression.Reason) { q.reason = r }, suppression.Reasons...), "Only the entry with this reason. Absent: the entries with any reason.", nil),
}}

// remove removes the entries of an address.
func (h *suppressions) remove(c *rest.Call) error {
	var q named
	namedParams.ReadQuery(c.Request, &q, &c.Errors)
	if err := c.Errors.Err(); err != nil {
		return err
	}
	if err := h.svc.Unsuppress(c.Request.Context(), c.Caller.Tenant, q.channel, q.address, q.reason); err != nil {
		return rest.NoSuch("suppression", err)
	}
	c.Writer.WriteHeader(http.StatusNoContent)
	return nil
}
