package campaigns

import (
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/rest"
)

// previewMemory is the memory of the messages of a preview.
const previewMemory = 8 << 20

// previewView is a message, or the reason why there is none.
type previewView struct {
	Recipient string          `json:"recipient"`
	Line      int             `json:"line" doc:"The number of the line; the header is line 1."`
	To        string          `json:"to,omitempty" doc:"The address of the line, if it has one."`
	Message   rest.RawObject  `json:"message" nullable:"true" doc:"null: there is an error."`
	SMS       *pushes.SMSView `json:"sms,omitempty" doc:"The size of the text message. Absent if there is an error, or the channel sends no text messages."`
	Error     *string         `json:"error" nullable:"true" doc:"The error that makes the line invalid."`
}

type previewsView struct {
	Messages []previewView `json:"messages"`
}

func previewViewOf(p campaign.Preview) previewView {
	return previewView{p.Recipient, p.Line, p.To, rest.RawObject(p.Message), (*pushes.SMSView)(p.Size), rest.MaybeText(p.Error)}
}

// previewFields is the body of a preview.
var previewFields = rest.Table[campaign.Which]{SchemaName: "PreviewForm", Fields: []rest.Field[campaign.Which]{
	rest.Row("recipient", rest.Optional, rest.Text(func(w *campaign.Which, s string) { w.Recipient = s }, 1, pushes.MaxRecipient), "Only the message of this recipient. Default: the messages of the first five lines.", "user-42"),
	rest.Row("longest", rest.Optional, rest.Boolean(func(w *campaign.Which, is bool) { w.Longest = is }),
		"The messages of the five lines with the most text in their variables, the longest first. The whole audience is read, which takes seconds for a million lines. A tenant's previews of this kind and its simulations run one at a time. Not with recipient.", nil),
}}

// previewBody documents an optional body.
func previewBody(s *rest.Spec) *huma.RequestBody {
	body := previewFields.Body(s, map[string]any{"recipient": "user-42"})
	body.Required = false
	return body
}

// previewCampaign answers with messages of a campaign.
func (h *simulations) previewCampaign(c *rest.Call) error {
	var which campaign.Which
	if err := c.Reserve(previewMemory); err != nil {
		return err
	}
	if c.Request.ContentLength == 0 {
		if err := c.Errors.Err(); err != nil {
			return err
		}
	} else if err := readPreview(c, &which, &c.Errors); err != nil {
		return err
	}
	if which.Longest {
		place, err := h.turns.Acquire(c.Request.Context(), c.Caller.Tenant, 1)
		if err != nil {
			return err
		}
		defer place.Release()
	}
	p, lines, err := h.svc.Lines(c.Request.Context(), c.Caller.Tenant, c.ID, which)
	if errors.Is(err, campaign.ErrNotInAudience) {
		return &rest.Refusal{Kind: rest.NotFound, Detail: err.Error()}
	}
	if err != nil {
		return rest.NoSuch("campaign", err)
	}
	in, err := h.zones.DefaultZone(c.Request.Context(), c.Caller.Tenant)
	if err != nil {
		return err
	}
	return c.Compute(func() error {
		all, err := h.svc.Preview(&p, lines, in)
		if err != nil {
			return err
		}
		return c.Answer(http.StatusOK, previewsView{rest.ViewsOf(all, previewViewOf)})
	})
}

// readPreview reads the body, which may be empty.
func readPreview(c *rest.Call, which *campaign.Which, bad *rest.FieldErrors) error {
	body, err := c.Body(rest.MaxBody)
	if err != nil {
		return err
	}
	if len(body) > 0 {
		var found rest.FieldErrors
		if err := rest.ReadWhole(body, bad, func(r *rest.Reader) { previewFields.Read(r, which, &found) }); err != nil {
			return err
		}
		if which.Longest && which.Recipient != "" {
			found.Add("longest", "must not be true with recipient", true)
		}
		bad.AddAll("body", found)
	}
	return bad.Err()
}
