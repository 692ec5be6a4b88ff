package httpapi

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

const webhooksPath = "/v1/webhooks"

// newWebhook is the schema of a webhook to be made.
type newWebhook struct {
	URL    string   `json:"url" minLength:"1" maxLength:"2048" doc:"Where events are posted to: https or http, at a public address, without user and password." example:"https://example.com/hooks/sendquota"`
	Events []string `json:"events,omitempty" minItems:"1" uniqueItems:"true" nullable:"false" enum:"push.scheduled,push.deferred,push.sent,push.failed,push.expired,push.canceled,quota.near_limit" doc:"Which events to be told. Default: all."`
}

// webhookView is a webhook as the API shows it.
type webhookView struct {
	ID             string       `json:"id" format:"uuid"`
	URL            string       `json:"url"`
	Events         []push.Event `json:"events"`
	Status         string       `json:"status" enum:"enabled,disabled" doc:"A disabled one is told nothing: it failed for too long, or answered 410 Gone."`
	DisabledAt     *string      `json:"disabled_at" format:"date-time" nullable:"true"`
	DisabledReason string       `json:"disabled_reason,omitempty"`
	Failures       int          `json:"failures" doc:"Attempts that have failed since the last success."`
	FailingSince   *string      `json:"failing_since" format:"date-time" nullable:"true" doc:"When the first of these failed."`
	CreatedAt      string       `json:"created_at" format:"date-time"`
	Secret         string       `json:"secret,omitempty" doc:"What verifies the signatures of Standard Webhooks. Only in answers to creating and rotating: keep it."`
}

type webhooksView struct {
	Webhooks []webhookView `json:"webhooks" doc:"The oldest first."`
}

func webhookViewOf(w store.Webhook) webhookView {
	v := webhookView{
		ID: w.ID.String(), URL: w.URL, Events: w.Events, Status: "enabled", DisabledAt: maybe(w.DisabledAt), DisabledReason: w.DisabledReason,
		Failures: w.Failures, FailingSince: maybe(w.FailingSince), CreatedAt: stamp(w.CreatedAt),
	}
	if v.DisabledAt != nil {
		v.Status = "disabled"
	}
	return v
}

// webhookForm is a webhook as a caller asks for it.
type webhookForm struct {
	fields
	url    string
	events []push.Event
}

// readWebhook reads the members of a webhook to be made.
func readWebhook(r *reader) webhookForm {
	f := webhookForm{events: push.Events}
	given := false
	for name := range r.members {
		if string(name) == "events" {
			f.readEvents(r)
			continue
		}
		raw := r.value()
		switch {
		case r.err != nil:
			return f
		case string(name) == "url":
			given = true
			f.url = f.text("url", raw, 1, 2048)
		case string(name) == "secret":
			f.bad("secret", "can not be chosen: it is made here, and shown in the answer", nil)
		default:
			f.unknown(name, raw)
		}
	}
	if !given {
		f.missing("url")
	}
	return f
}

func (f *webhookForm) readEvents(r *reader) {
	if r.peek() != '[' {
		if raw := r.value(); r.err == nil {
			f.bad("events", "must be an array", raw)
		}
		return
	}
	f.events = nil
	for i := range r.elements {
		raw := r.value()
		if r.err != nil {
			return
		}
		e := push.Event(f.oneOf(item("events", i), raw, eventNames(push.Events...)...))
		if slices.Contains(f.events, e) && e != "" {
			f.bad("events", "must not name an event twice", raw)
		}
		f.events = append(f.events, e)
	}
	if len(f.events) == 0 {
		f.bad("events", "must not be empty; leave it out for all events", nil)
	}
}

func eventNames(events ...push.Event) []string {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = string(e)
	}
	return names
}

// createWebhook makes a webhook, and shows its secret.
func (a *api) createWebhook(c *call) error {
	var bad faults
	readQuery(c.r, &bad)
	var (
		f        webhookForm
		isObject bool
	)
	if _, err := c.object(maxBody, &bad, func(r *reader) { f, isObject = readWebhook(r), true }); err != nil {
		return err
	}
	if isObject && !f.faulty("url") {
		if message := a.cfg.Webhooks.URLFault(f.url); message != "" {
			f.faults = append(f.faults, invalid.FieldError{Field: "url", Message: message, Value: shown(f.url)})
		}
	}
	bad.addAll("body", f.faults)
	if err := bad.err(); err != nil {
		return err
	}
	w, secret, err := a.cfg.Webhooks.Create(c.r.Context(), c.caller.Tenant, f.url, f.events)
	if err != nil {
		return err
	}
	v := webhookViewOf(w)
	v.Secret = secret
	c.w.Header().Set("Location", webhooksPath+"/"+v.ID)
	return a.answer(c.w, http.StatusCreated, v)
}

// listWebhooks answers with all of a tenant's webhooks.
func (a *api) listWebhooks(c *call) error {
	var bad faults
	readQuery(c.r, &bad)
	if err := bad.err(); err != nil {
		return err
	}
	hooks, err := a.cfg.Webhooks.List(c.r.Context(), c.caller.Tenant)
	if err != nil {
		return err
	}
	v := webhooksView{Webhooks: make([]webhookView, len(hooks))}
	for i, w := range hooks {
		v.Webhooks[i] = webhookViewOf(w)
	}
	return a.answer(c.w, http.StatusOK, v)
}

// getWebhook answers with one webhook.
func (a *api) getWebhook(c *call) error {
	id, err := c.bareWebhook()
	if err != nil {
		return err
	}
	w, err := a.cfg.Webhooks.Get(c.r.Context(), c.caller.Tenant, id)
	if err != nil {
		return noSuch("webhook", err)
	}
	return a.answer(c.w, http.StatusOK, webhookViewOf(w))
}

// deleteWebhook ends a webhook.
func (a *api) deleteWebhook(c *call) error {
	id, err := c.bareWebhook()
	if err != nil {
		return err
	}
	if err := a.cfg.Webhooks.Delete(c.r.Context(), c.caller.Tenant, id); err != nil {
		return noSuch("webhook", err)
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// bareWebhook reads the id in the path of a request that says nothing else.
func (c *call) bareWebhook() (uuid.UUID, error) {
	var bad faults
	readQuery(c.r, &bad)
	id := c.pathID("id", &bad)
	if err := c.noBody(&bad); err != nil {
		return id, err
	}
	return id, bad.err()
}

// noSuch says what was not found.
func noSuch(thing string, err error) error {
	if errors.Is(err, push.ErrNotFound) {
		return &refusal{kind: notFound, detail: "there is no such " + thing}
	}
	return err
}

func exampleWebhook() webhookView {
	return webhookViewOf(store.Webhook{
		ID: uuid.MustParse(exampleID), URL: "https://example.com/hooks/sendquota", Events: []push.Event{push.EventSent, push.EventFailed}, CreatedAt: exampleTime(0),
	})
}

func exampleNewWebhook() webhookView {
	v := exampleWebhook()
	v.Secret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD5NdAxrpTTdk="
	return v
}

func exampleDisabledWebhook() webhookView {
	v := exampleWebhook()
	v.Status, v.Failures, v.DisabledReason = "disabled", 42, "42 attempts in a row have failed, since 2026-12-01T08:00:00Z"
	v.FailingSince, v.DisabledAt = maybe(exampleTime(0)), maybe(exampleTime(72*time.Hour))
	return v
}

func createWebhookDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "create-webhook", Method: http.MethodPost, Path: webhooksPath, Tags: []string{tagWebhooks},
		Summary: "Create a webhook",
		Description: "From now on, each event that it asks for is posted to the URL: signed as Standard Webhooks demands, at least once, in order for each push, " +
			"and repeated over a day until the endpoint answers 2xx. The answer holds the secret that verifies the signatures; it is shown only here.",
		RequestBody: s.body(newWebhook{}, map[string]any{"url": "https://example.com/hooks/sendquota", "events": []string{"push.sent", "push.failed"}}),
		Responses: s.located(s.responses(http.StatusCreated, "The webhook is on.", webhookView{}, exampleNewWebhook(),
			invalidRequest, tooManyWebhooks, tooLarge, unsupportedMedia)),
	}
}

func listWebhooksDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "list-webhooks", Method: http.MethodGet, Path: webhooksPath, Tags: []string{tagWebhooks},
		Summary: "List webhooks", Description: "All of the tenant's, the oldest first.",
		Responses: s.responses(http.StatusOK, "The webhooks.", webhooksView{}, webhooksView{[]webhookView{exampleWebhook()}}, invalidRequest),
	}
}

func getWebhookDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "get-webhook", Method: http.MethodGet, Path: webhooksPath + "/{id}", Tags: []string{tagWebhooks},
		Summary: "Read a webhook", Description: "It also says how the endpoint fares, and whether it was switched off and why.",
		Parameters: []*huma.Param{s.webhookID()},
		Responses:  s.responses(http.StatusOK, "The webhook.", webhookView{}, exampleDisabledWebhook(), invalidRequest, notFound),
	}
}

func deleteWebhookDoc(s *spec) *huma.Operation {
	responses := s.responses(http.StatusNoContent, "The webhook is gone.", webhookView{}, nil, invalidRequest, notFound, tooLarge, unsupportedMedia)
	responses["204"].Content = nil
	return &huma.Operation{
		OperationID: "delete-webhook", Method: http.MethodDelete, Path: webhooksPath + "/{id}", Tags: []string{tagWebhooks},
		Summary: "Delete a webhook", Description: "No request is begun any more; one that is under way may still arrive. What was sent can not be looked at any more.",
		Parameters: []*huma.Param{s.webhookID()}, Responses: responses,
	}
}

// located adds the header of what was made.
func (s *spec) located(all map[string]*huma.Response) map[string]*huma.Response {
	all["201"].Headers["Location"] = &huma.Param{Description: "Its path.", Schema: &huma.Schema{Type: huma.TypeString}}
	return all
}
