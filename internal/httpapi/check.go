package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// question is the schema of a quota check.
type question struct {
	Recipient string `json:"recipient" minLength:"1" maxLength:"128" doc:"Whose quota." example:"user-42"`
	Channel   string `json:"channel,omitempty" maxLength:"64" doc:"Default: the first channel that is configured." example:"push"`
	Category  string `json:"category,omitempty" maxLength:"64" example:"marketing"`
	SendAt    string `json:"send_at,omitempty" format:"date-time" doc:"When it would be sent, with a zone. Default: now." example:"2026-12-01T09:00:00+01:00"`
}

// checkView is what a submit would meet.
type checkView struct {
	Allowed             bool            `json:"allowed"`
	Violations          []violationView `json:"violations"`
	NextAvailableAt     *string         `json:"next_available_at" format:"date-time" nullable:"true" doc:"The first free time from the asked one on."`
	PreviousAvailableAt *string         `json:"previous_available_at" format:"date-time" nullable:"true" doc:"The last free time up to the asked one; null where none lies in the future."`
}

// check says whether a push would find a place. It books nothing.
func (a *api) check(c *call) error {
	var bad faults
	readQuery(c.r, &bad)
	var f form
	if _, err := c.object(maxBody, &bad, func(r *reader) { f = readQuestion(r) }); err != nil {
		return err
	}
	if len(bad.list)+len(f.faults) > 0 {
		f.complete(a.svc)
		bad.addAll("body", f.faults)
		return bad.err()
	}
	found, err := a.svc.Check(c.r.Context(), c.caller.Tenant, f.Request)
	if err != nil {
		return f.explain("body", err)
	}
	return a.answer(c.w, http.StatusOK, checkView{
		Allowed: found.Allowed(), Violations: violationViews(found.Violations),
		NextAvailableAt: maybe(found.Next), PreviousAvailableAt: maybe(found.Previous),
	})
}

// readQuestion reads those members of a push that a quota is about.
func readQuestion(r *reader) form {
	var f form
	for name := range r.members {
		raw := r.value()
		if r.err != nil {
			return f
		}
		switch string(name) {
		case "recipient", "channel", "category", "send_at":
			f.read(name, raw)
		default:
			f.unknown(name, raw)
		}
	}
	if f.Recipient == "" && !f.faulty("recipient") {
		f.missing("recipient")
	}
	return f
}

func checkDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "check-quota", Method: http.MethodPost, Path: "/v1/quota/check", Tags: []string{tagQuota},
		Summary:     "Ask whether a push would find a place",
		Description: "Answers as a submit would decide now, and books nothing.",
		RequestBody: s.body(question{}, exampleQuestion()),
		Responses: s.responses(http.StatusOK, "Whether there is a place, and if not why, and when else.", checkView{}, exampleCheck(),
			invalidRequest, tooLarge, unsupportedMedia),
	}
}
