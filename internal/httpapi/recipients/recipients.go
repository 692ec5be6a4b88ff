package recipients

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/rest"
)

// Path is the path of the recipients.
const Path = "/v1/recipients"

// descriptionView is the description of a recipient.
type descriptionView struct {
	Recipient  string            `json:"recipient"`
	TimeZone   *string           `json:"time_zone" nullable:"true" doc:"null: the default zone of the policy."`
	Addresses  map[string]string `json:"addresses" doc:"By the name of the channel."`
	OptOuts    wantsView         `json:"opt_outs"`
	Limits     []ownLimit        `json:"limits" doc:"The recipient's own limits, which replace the limits of the named rules."`
	Attributes rest.RawObject    `json:"attributes" doc:"Your own data."`
	CreatedAt  string            `json:"created_at" format:"date-time"`
	UpdatedAt  string            `json:"updated_at" format:"date-time"`
}

// wantsView lists the opt-outs of a recipient.
type wantsView struct {
	All        bool     `json:"all"`
	Channels   []string `json:"channels"`
	Categories []string `json:"categories"`
}

// describedView is a stored description, and its effects.
type describedView struct {
	descriptionView
	Canceled  int `json:"canceled" doc:"The number of scheduled pushes that were canceled, because the recipient has opted out of them."`
	Rechecked int `json:"rechecked" doc:"The recipient's due pushes that a rule had postponed: each becomes due again, and the current limits and time zone decide."`
}

// TransformSchema adds the members of the description.
func (*describedView) TransformSchema(r huma.Registry, s *huma.Schema) *huma.Schema {
	return rest.WithMembersOf[descriptionView](r, s)
}

type descriptionsView struct {
	Recipients    []descriptionView `json:"recipients"`
	NextPageToken string            `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list."`
}

func descriptionViewOf(d booking.Description) descriptionView {
	v := descriptionView{
		Recipient: d.Recipient, Addresses: d.Addresses, Limits: ownLimits(&d), Attributes: rest.RawObject(orEmpty(d.Attributes)), CreatedAt: rest.Stamp(d.CreatedAt), UpdatedAt: rest.Stamp(d.UpdatedAt),
		OptOuts: wantsView{d.OptOuts.All, append([]string{}, d.OptOuts.Channels...), append([]string{}, d.OptOuts.Categories...)},
	}
	if d.TimeZone != "" {
		v.TimeZone = &d.TimeZone
	}
	if v.Addresses == nil {
		v.Addresses = map[string]string{}
	}
	return v
}

// describe replaces the description of a recipient.
func (h *recipients) describe(c *rest.Call) error {
	var (
		found rest.FieldErrors
		d     description
	)
	if _, err := c.Object(rest.MaxBody, &c.Errors, func(r *rest.Reader) { recipientFields.Read(r, &d, &found) }); err != nil {
		return err
	}
	if d.Recipient != "" && d.Recipient != c.Text {
		found.Add("recipient", "must be the recipient of the path, or be left out", rest.Shown(d.Recipient))
	}
	addFaults(h.svc.CheckDescription(c.Caller.Tenant, d.Description), &found)
	c.Errors.AddAll("body", found)
	if err := c.Errors.Err(); err != nil {
		return err
	}
	d.Recipient, d.Log = c.Text, true
	all, err := h.svc.Describe(c.Request.Context(), c.Caller.Tenant, []booking.Description{d.Description})
	if err != nil {
		return err
	}
	status := http.StatusOK
	if all[0].Created {
		status = http.StatusCreated
		c.Header("Location", Path+"/"+url.PathEscape(c.Text))
	}
	return c.Answer(status, describedView{descriptionViewOf(all[0].Description), all[0].Pushes, all[0].Rechecked})
}

// addFaults adds errors of a description beyond its form, for members with a valid form.
func addFaults(faults invalid.FieldErrors, found *rest.FieldErrors) {
	unread := *found
	for _, one := range faults {
		if !unread.Has(one.Field) {
			if text, ok := one.Value.(string); ok {
				one.Value = rest.Shown(text)
			}
			found.Keep(one)
		}
	}
}

// erasedView is the result of erasing a recipient.
type erasedView struct {
	Canceled int `json:"canceled" doc:"The number of scheduled pushes that were canceled."`
	Erased   int `json:"erased" doc:"The number of rows with erased data: the recipient, pushes, attempts and events."`
}

// erase erases a recipient.
func (h *recipients) erase(c *rest.Call) error {
	erased, err := h.svc.Erase(c.Request.Context(), quota.Recipient{Tenant: c.Caller.Tenant, ID: c.Text})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, erasedView{erased.Pushes, erased.Rows})
}

func (h *recipients) getDescription(c *rest.Call) error {
	d, err := h.svc.Description(c.Request.Context(), quota.Recipient{Tenant: c.Caller.Tenant, ID: c.Text})
	if err != nil {
		return rest.NoSuch("recipient", err)
	}
	return c.Answer(http.StatusOK, descriptionViewOf(d))
}

// descriptionFilter selects descriptions.
type descriptionFilter struct {
	booking.DescriptionFilter
	rest.PageParams
}

var descriptionsParams = rest.Pages(
	rest.Row("opted_out", rest.Optional, rest.Boolean(func(q *descriptionFilter, v bool) { q.OptedOut = v }).Or("false"), "Only recipients with any opt-out.", nil),
	rest.Row("address", rest.Optional, rest.Text(func(q *descriptionFilter, v string) { q.Address = v }, 1, pushes.MaxTo), "Only recipients with this address on some channel, in upper or lower case.", "aiko@example.com"),
)

func (h *recipients) listDescriptions(c *rest.Call) error {
	return rest.List(c, &descriptionsParams, func(q descriptionFilter, after string) (all []booking.Description, next *string, err error) {
		all, more, err := h.svc.Descriptions(c.Request.Context(), c.Caller.Tenant, q.DescriptionFilter, after, q.Size)
		if more {
			next = &all[len(all)-1].Recipient
		}
		return all, next, err
	}, func(all []booking.Description, next string) any {
		return descriptionsView{rest.ViewsOf(all, descriptionViewOf), next}
	})
}

func (h *recipients) routes(s *rest.Spec) []rest.Operation {
	description := descriptionViewOf(booking.Description{
		Recipient: "user-42", TimeZone: "Asia/Tokyo", Addresses: map[string]string{"sms": "+819012345678", "email": "aiko@example.com"},
		OptOuts: booking.OptOuts{Channels: []string{"sms"}, Categories: []string{"marketing"}}, Limits: map[string]int{"per-day": 20},
		Attributes: json.RawMessage(`{"first_name": "Aiko", "plan": "gold"}`), CreatedAt: rest.ExampleTime(-24 * 3600e9), UpdatedAt: rest.ExampleTime(0),
	})
	described := describedView{description, 1, 0}
	return []rest.Operation{{
		ID: "put-recipient", Method: http.MethodPut, Path: Path + "/{id}", Tag: Tag, Scope: push.ScopeRecipientsWrite, Serve: h.describe,
		Summary: "Describe a recipient",
		Description: "Replaces the description of a recipient. Describing recipients is optional. Scheduled pushes that the recipient has opted out of are canceled in the " +
			"same transaction, with the last_error opted-out; a push that is being sent is canceled before a second attempt.",
		Body: recipientFields.Body(s, json.RawMessage(`{"time_zone": "Asia/Tokyo", "addresses": {"push": "device-token-42"},
			"opt_outs": {"all": false, "channels": ["push"], "categories": ["marketing"]},
			"limits": [{"rule": "per-day", "limit": 20}], "attributes": {"first_name": "Aiko", "plan": "gold"}}`)),
		Status: http.StatusOK, Answer: "The previous description is replaced.", Example: described,
		Finish: func(all map[string]*huma.Response) {
			all["201"] = s.Response("The recipient was not described before.", described)
			rest.AddHeader(all["201"], "Location", "The path of the recipient.")
		},
	}, {
		ID: "list-recipients", Method: http.MethodGet, Path: Path, Tag: Tag, Scope: push.ScopeRecipientsRead, Serve: h.listDescriptions,
		Summary: "List recipients", Description: "Lists the described recipients, by id. A page ends early at about 1 MiB.",
		Query: &descriptionsParams, Status: http.StatusOK, Answer: "A page of recipients.",
		Example: descriptionsView{Recipients: []descriptionView{description}},
	}, {
		ID: "get-recipient", Method: http.MethodGet, Path: Path + "/{id}", Tag: Tag, Scope: push.ScopeRecipientsRead, Serve: h.getDescription,
		Summary: "Read a recipient", Description: "Returns the description of a recipient.",
		Status: http.StatusOK, Answer: "The recipient.", Example: description, Problems: []rest.Kind{rest.NotFound},
	}, {
		ID: "erase-recipient", Method: http.MethodDelete, Path: Path + "/{id}", Tag: Tag, Scope: push.ScopeRecipientsWrite, Serve: h.erase,
		Summary: "Erase a recipient",
		Description: "Cancels the recipient's scheduled pushes, and erases message, address, metadata, recipient and attributes everywhere. The pushes can no longer be read. " +
			"Sent messages still count in the quota of a recipient with this id. If the request fails, repeat it: it continues.",
		Status: http.StatusOK, Answer: "The recipient is erased.", Example: erasedView{2, 14},
	}}
}
