package httpapi

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

const recipientsPath = "/v1/recipients"

// descriptionView is what is known of a recipient.
type descriptionView struct {
	Recipient  string            `json:"recipient"`
	TimeZone   *string           `json:"time_zone" nullable:"true" doc:"null: the default zone of the policy."`
	Addresses  map[string]string `json:"addresses" doc:"By the name of the channel."`
	OptOuts    wantsView         `json:"opt_outs"`
	Limits     []ownLimit        `json:"limits" doc:"The recipient's own limits, which replace the limits of the named rules."`
	Attributes rawObject         `json:"attributes" doc:"Your own data."`
	CreatedAt  string            `json:"created_at" format:"date-time"`
	UpdatedAt  string            `json:"updated_at" format:"date-time"`
}

// wantsView is what a recipient does not want.
type wantsView struct {
	All        bool     `json:"all"`
	Channels   []string `json:"channels"`
	Categories []string `json:"categories"`
}

// describedView is a description as it was stored.
type describedView struct {
	descriptionView
	Canceled  int `json:"canceled" doc:"The number of scheduled pushes that were canceled, because the recipient has opted out of them."`
	Rechecked int `json:"rechecked" doc:"The recipient's due pushes that a rule had postponed: each becomes due again, and the current limits and time zone decide."`
}

// TransformSchema adds the members of the description.
func (*describedView) TransformSchema(r huma.Registry, s *huma.Schema) *huma.Schema {
	return withMembersOf[descriptionView](r, s)
}

type descriptionsView struct {
	Recipients    []descriptionView `json:"recipients"`
	NextPageToken string            `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list."`
}

func descriptionViewOf(d booking.Description) descriptionView {
	v := descriptionView{
		Recipient: d.Recipient, Addresses: d.Addresses, Limits: ownLimits(&d), Attributes: rawObject(orEmpty(d.Attributes)), CreatedAt: stamp(d.CreatedAt), UpdatedAt: stamp(d.UpdatedAt),
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

// describe stores what the caller says of a recipient, in the place of what it said before.
func (h *recipients) describe(c *call) error {
	var (
		found fieldErrors
		d     description
	)
	if _, err := c.object(maxBody, &c.bad, func(r *reader) { recipientFields.read(r, &d, &found) }); err != nil {
		return err
	}
	if d.Recipient != "" && d.Recipient != c.text {
		found.add("recipient", "must be the recipient of the path, or be left out", shown(d.Recipient))
	}
	addFaults(h.svc.CheckDescription(d.Description), &found)
	c.bad.addAll("body", found)
	if err := c.bad.err(); err != nil {
		return err
	}
	d.Recipient, d.Log = c.text, true
	all, err := h.svc.Describe(c.r.Context(), c.caller.Tenant, []booking.Description{d.Description})
	if err != nil {
		return err
	}
	status := http.StatusOK
	if all[0].Created {
		status = http.StatusCreated
		c.header("Location", recipientsPath+"/"+url.PathEscape(c.text))
	}
	return c.answer(status, describedView{descriptionViewOf(all[0].Description), all[0].Pushes, all[0].Rechecked})
}

// addFaults adds what is wrong with a description beyond its form, of the members whose form is right.
func addFaults(faults invalid.FieldErrors, found *fieldErrors) {
	unread := *found
	for _, one := range faults {
		if !unread.has(one.Field) {
			if text, ok := one.Value.(string); ok {
				one.Value = shown(text)
			}
			found.keep(one)
		}
	}
}

// erasedView is what became of a recipient who was forgotten.
type erasedView struct {
	Canceled int `json:"canceled" doc:"The number of scheduled pushes that were canceled."`
	Erased   int `json:"erased" doc:"The number of rows with erased data: the recipient, pushes, attempts and events."`
}

// erase forgets a recipient.
func (h *recipients) erase(c *call) error {
	erased, err := h.svc.Erase(c.r.Context(), quota.Recipient{Tenant: c.caller.Tenant, ID: c.text})
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, erasedView{erased.Pushes, erased.Rows})
}

func (h *recipients) getDescription(c *call) error {
	d, err := h.svc.Description(c.r.Context(), quota.Recipient{Tenant: c.caller.Tenant, ID: c.text})
	if err != nil {
		return noSuch("recipient", err)
	}
	return c.answer(http.StatusOK, descriptionViewOf(d))
}

// descriptionFilter is which descriptions are asked for.
type descriptionFilter struct {
	booking.DescriptionFilter
	pageParams
}

var descriptionsParams = pages(
	row("opted_out", optional, boolean(func(q *descriptionFilter, v bool) { q.OptedOut = v }).or("false"), "Only recipients with any opt-out.", nil),
	row("address", optional, text(func(q *descriptionFilter, v string) { q.Address = v }, 1, maxTo), "Only recipients with this address on some channel, in upper or lower case.", "aiko@example.com"),
)

func (h *recipients) listDescriptions(c *call) error {
	return list(c, &descriptionsParams, func(q descriptionFilter, after string) (all []booking.Description, next *string, err error) {
		all, more, err := h.svc.Descriptions(c.r.Context(), c.caller.Tenant, q.DescriptionFilter, after, q.size)
		if more {
			next = &all[len(all)-1].Recipient
		}
		return all, next, err
	}, func(all []booking.Description, next string) any {
		return descriptionsView{viewsOf(all, descriptionViewOf), next}
	})
}

func (h *recipients) routes(s *spec) []operation {
	description := descriptionViewOf(booking.Description{
		Recipient: "user-42", TimeZone: "Asia/Tokyo", Addresses: map[string]string{"sms": "+819012345678", "email": "aiko@example.com"},
		OptOuts: booking.OptOuts{Channels: []string{"sms"}, Categories: []string{"marketing"}}, Limits: map[string]int{"per-day": 20},
		Attributes: json.RawMessage(`{"first_name": "Aiko", "plan": "gold"}`), CreatedAt: exampleTime(-24 * 3600e9), UpdatedAt: exampleTime(0),
	})
	described := describedView{description, 1, 0}
	return []operation{{
		id: "put-recipient", method: http.MethodPut, path: recipientsPath + "/{id}", tag: tagRecipients, scope: push.ScopeRecipientsWrite, serve: h.describe,
		summary: "Describe a recipient",
		description: "Replaces the description of a recipient. Describing recipients is optional. Scheduled pushes that the recipient has opted out of are canceled in the " +
			"same transaction, with the last_error opted-out; a push that is being sent is canceled before a second attempt.",
		body: recipientFields.body(s, json.RawMessage(`{"time_zone": "Asia/Tokyo", "addresses": {"push": "device-token-42"},
			"opt_outs": {"all": false, "channels": ["push"], "categories": ["marketing"]},
			"limits": [{"rule": "per-day", "limit": 20}], "attributes": {"first_name": "Aiko", "plan": "gold"}}`)),
		status: http.StatusOK, answer: "The previous description is replaced.", example: described,
		finish: func(all map[string]*huma.Response) {
			all["201"] = s.response("The recipient was not described before.", described)
			addHeader(all["201"], "Location", "The path of the recipient.")
		},
	}, {
		id: "list-recipients", method: http.MethodGet, path: recipientsPath, tag: tagRecipients, scope: push.ScopeRecipientsRead, serve: h.listDescriptions,
		summary: "List recipients", description: "Lists the described recipients, by id. A page ends early at about 1 MiB.",
		query: &descriptionsParams, status: http.StatusOK, answer: "A page of recipients.",
		example: descriptionsView{Recipients: []descriptionView{description}},
	}, {
		id: "get-recipient", method: http.MethodGet, path: recipientsPath + "/{id}", tag: tagRecipients, scope: push.ScopeRecipientsRead, serve: h.getDescription,
		summary: "Read a recipient", description: "Returns the description of a recipient.",
		status: http.StatusOK, answer: "The recipient.", example: description, problems: []kind{notFound},
	}, {
		id: "erase-recipient", method: http.MethodDelete, path: recipientsPath + "/{id}", tag: tagRecipients, scope: push.ScopeRecipientsWrite, serve: h.erase,
		summary: "Erase a recipient",
		description: "Cancels the recipient's scheduled pushes, and erases message, address, metadata, recipient and attributes everywhere. The pushes can no longer be read. " +
			"Sent messages still count in the quota of a recipient with this id. If the request fails, repeat it: it continues.",
		status: http.StatusOK, answer: "The recipient is erased.", example: erasedView{2, 14},
	}}
}
