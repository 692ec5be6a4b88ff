package pauses

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

func (h *pauses) routes(s *rest.Spec) []rest.Operation {
	example := pauseViewOf(pause.Pause{
		ID: uuid.MustParse(rest.ExampleID), Tenant: uuid.MustParse(rest.ExampleOtherID), Scope: pause.Channel, Name: "push", Reason: "wrong text",
		Until: rest.ExampleTime(2 * time.Hour), CreatedAt: rest.ExampleTime(0),
	})
	return []rest.Operation{{
		ID: "create-pause", Method: http.MethodPost, Path: Path, Tag: Tag, Scope: push.ScopePausesWrite, Serve: h.createPause,
		Summary: "Stop sending",
		Description: "From two seconds after the answer on, no attempt begins in the scope of the pause, over all workers; an attempt in progress is finished. " +
			"Pushes are still booked, keep their places, and expire at their usual time. When the pause ends, the pushes that became due are sent as the quota allows.\n\n" +
			"The same scope and name again return the pause that is in force, with a 200. The pause takes over the reason and the until that the repeated request gives, also null; " +
			"what is left out stays. A change is in the audit log, and webhooks get sending.paused again. So a request can be repeated safely, and needs no Idempotency-Key: the scope and the name are its key. " +
			"A category may be one that does not exist yet; the answer then has a warning, with the nearest name. A tenant may have 100 pauses of channels, categories and campaigns, and always one of everything. Bypass and service levels do not pass a pause.",
		Body:   pauseFields.Body(s, map[string]any{"scope": "channel", "name": "push", "reason": "wrong text", "until": nil}),
		Status: http.StatusCreated, Answer: "The pause is in force.", Example: example, Problems: []rest.Kind{TooMany, rest.NotFound},
		Finish: func(all map[string]*huma.Response) {
			all["200"] = s.Response("The pause of this scope and name was in force already; it has what the request gave.", example)
			for _, status := range []string{"200", "201"} {
				rest.AddHeader(all[status], "Location", "The path of the pause.")
			}
		},
	}, {
		ID: "list-pauses", Method: http.MethodGet, Path: Path, Tag: Tag, Scope: push.ScopePausesRead, Serve: h.listPauses,
		Summary: "List what is paused", Description: "Lists the pauses that are in force for the tenant: its own, and those of the operator for all tenants.", Query: &pausesParams,
		Status: http.StatusOK, Answer: "A page of pauses.", Example: pausesView{Pauses: []pauseView{example}},
	}, {
		ID: "get-pause", Method: http.MethodGet, Path: Path + "/{id}", Tag: Tag, Scope: push.ScopePausesRead, Serve: h.getPause,
		Summary: "Read a pause", Description: "Returns a pause that is in force. One that has ended does not exist any more; the audit log has it.",
		Status: http.StatusOK, Answer: "The pause.", Example: example, Problems: []rest.Kind{rest.NotFound},
	}, {
		ID: "delete-pause", Method: http.MethodDelete, Path: Path + "/{id}", Tag: Tag, Scope: push.ScopePausesWrite, Serve: h.deletePause,
		Summary: "Resume sending", Description: "Ends the pause. The pushes that became due meanwhile are sent now, as the quota allows, or have expired. A pause of the operator is a 403.",
		Status: http.StatusNoContent, Answer: "The pause has ended.", Problems: []rest.Kind{rest.NotFound},
	}}
}
