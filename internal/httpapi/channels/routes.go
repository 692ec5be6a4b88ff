package channels

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/httpapi/webhooks"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

var exampleForm = map[string]any{"type": "sms", "account_sid": "AC0123456789", "auth_token": "the token of the account", "from": "+4512345678"}

func (h *channels) routes(s *rest.Spec) []rest.Operation {
	example := channelView{Name: "sms", Owner: "tenant", CreatedAt: rest.ExampleTime(0), UpdatedAt: rest.ExampleTime(0), Members: json.RawMessage(
		`{"type":"sms","timeout":"10s","allow_private_addresses":false,"on_unknown":"retry","max_attempts":8,"backoff":{"first":"5s","max":"15m"},"disabled":false,` +
			`"account_sid":{"set":true,"set_at":"2026-12-01T08:00:00Z"},"auth_token":{"set":true,"set_at":"2026-12-01T08:00:00Z"},"from":"+4512345678"}`)}
	return []rest.Operation{{
		ID: "get-channel", Method: http.MethodGet, Path: Path, Tag: h.tag, Scope: push.ScopeChannelsRead, Serve: h.get,
		Summary: "Read a channel", Description: "Returns your own channel of that name with its settings, or the operator's without.",
		Status: http.StatusOK, Answer: "The channel.", Example: example, Problems: []rest.Kind{rest.NotFound},
	}, {
		ID: "put-channel", Method: http.MethodPut, Path: Path, Tag: h.tag, Scope: push.ScopeChannelsWrite, Serve: h.put,
		Summary: "Create or replace a channel of your own",
		Description: "The members are those of the channel's type. Your channel hides the operator's of the same name: pushes never go through that one then, not even while yours is " +
			"disabled or cannot be opened; they wait. A change is in force within two seconds. Secrets are stored sealed, and never shown again. A secret that you leave out stays, unless the type or " +
			"the host that gets it changes; null removes it.",
		Body:   &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: formSchema(s), Example: rest.PlainJSON(exampleForm)}}},
		Status: http.StatusOK, Answer: "The channel was replaced.", Example: example, Problems: []rest.Kind{TooMany, Unready, webhooks.NotConfigured},
		Finish: func(all map[string]*huma.Response) {
			created := *all["200"]
			created.Description, created.Headers = "The channel is new.", map[string]*huma.Param{}
			for name, header := range all["200"].Headers {
				created.Headers[name] = header
			}
			rest.AddHeader(&created, "Location", "The path of the channel.")
			all["201"] = &created
		},
	}, {
		ID: "delete-channel", Method: http.MethodDelete, Path: Path, Tag: h.tag, Scope: push.ScopeChannelsWrite, Serve: h.delete, Query: &deletionParams,
		Summary: "Delete a channel of your own",
		Description: "While pushes are booked for the channel, it is not deleted, unless pushes=cancel cancels them. It is not deleted either while a campaign in progress has more recipients: cancel that first. After the deletion, a push can be submitted to the operator's channel of that name, " +
			"if there is one. If an attempt does not end in time, the answer is channel-in-use, and nothing more is accepted or sent; repeat the request then.",
		Status: http.StatusOK, Answer: "The channel is deleted.", Example: deletedView{}, Problems: []rest.Kind{rest.NotFound, InUse},
	}, {
		ID: "test-channel", Method: http.MethodPost, Path: Path + "/test", Tag: h.tag, Scope: push.ScopeChannelsWrite, Serve: h.test,
		Summary:     "Send a test message through a channel of your own",
		Description: "Makes one attempt at once, outside of any quota, and returns its outcome. A pause stops it like any attempt. A tenant can make ten tests an hour. The audit log lists them.",
		Body:        testFields.Body(s, map[string]any{"to": "+4512345678", "message": map[string]any{"body": "Hello"}}),
		Status:      http.StatusOK, Answer: "The outcome of the attempt.", Example: testView{push.Delivered, "", "SM0123456789", 212, 9}, Problems: []rest.Kind{rest.NotFound, Unready},
	}}
}
