package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/push"
)

// cancel ends a push that still waits. It needs no body; an empty object is
// taken as none.
func (a *api) cancel(c *call) error {
	var bad faults
	readQuery(c.r, &bad)
	id := c.pushID(&bad)
	if err := c.reserve(pushBytes); err != nil {
		return err
	}
	if err := c.noBody(&bad); err != nil {
		return err
	}
	if err := bad.err(); err != nil {
		return err
	}
	p, err := a.svc.Cancel(c.r.Context(), c.caller.Tenant, id)
	if err != nil {
		return &aboutPush{error: err, push: p}
	}
	return a.answer(c.w, http.StatusOK, viewOf(p))
}

// noBody faults whatever a body asks for.
func (c *call) noBody(bad *faults) error {
	if c.r.ContentLength == 0 {
		return nil
	}
	body, err := c.body(maxBody)
	if err != nil || len(body) == 0 {
		return err
	}
	r, isObject := start(body, bad)
	if isObject {
		var f fields
		for name := range r.members {
			if raw := r.value(); r.err == nil {
				f.unknown(name, raw)
			}
		}
		bad.addAll("body", f.faults)
	}
	return finish(r, bad)
}

func cancelDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "cancel-push", Method: http.MethodPost, Path: "/v1/pushes/{id}/cancel", Tags: []string{tagPushes},
		Summary: "Cancel a push",
		Description: "Once this has answered 200, nothing is delivered any more, and the place in the quota is free. If an earlier attempt ended with an " +
			"unknown outcome, possibly_delivered is true. Canceling again answers the same.",
		Parameters: []*huma.Param{s.pushID()},
		Responses: s.responses(http.StatusOK, "The push is canceled.", pushView{}, examplePush(push.Canceled),
			invalidRequest, notFound, notCancelable, tooLarge, unsupportedMedia),
	}
}
