package httpapi

import (
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/campaign"
)

// previewMemory is for the messages of a preview.
const previewMemory = 8 << 20

// previewView is a message, or why there is none.
type previewView struct {
	Recipient string    `json:"recipient"`
	Line      int       `json:"line" doc:"The number of the line; the header is line 1."`
	To        string    `json:"to,omitempty" doc:"The address of the line, if it has one."`
	Message   rawObject `json:"message" nullable:"true" doc:"null: there is an error."`
	Error     *string   `json:"error" nullable:"true" doc:"The error that makes the line invalid."`
}

type previewsView struct {
	Messages []previewView `json:"messages"`
}

func previewViewOf(p campaign.Preview) previewView {
	return previewView{p.Recipient, p.Line, p.To, rawObject(p.Message), maybeText(p.Error)}
}

// previewFields is the body of a preview.
var previewFields = table[campaign.Which]{schemaName: "PreviewForm", fields: []field[campaign.Which]{
	row("recipient", optional, text(func(w *campaign.Which, s string) { w.Recipient = s }, 1, maxRecipient), "Only the message of this recipient. Default: the messages of the first five lines.", "user-42"),
	row("longest", optional, boolean(func(w *campaign.Which, is bool) { w.Longest = is }),
		"The messages of the five lines with the most text in their variables, the longest first. The whole audience is read, which takes seconds for a million lines. A tenant's previews of this kind and its simulations run one at a time. Not with recipient.", nil),
}}

// previewBody need not be there.
func previewBody(s *spec) *huma.RequestBody {
	body := previewFields.body(s, map[string]any{"recipient": "user-42"})
	body.Required = false
	return body
}

// previewCampaign shows messages of a campaign.
func (h *simulations) previewCampaign(c *call) error {
	var which campaign.Which
	if err := c.reserve(previewMemory); err != nil {
		return err
	}
	if c.r.ContentLength == 0 {
		if err := c.bad.err(); err != nil {
			return err
		}
	} else if err := c.readPreview(&which, &c.bad); err != nil {
		return err
	}
	if which.Longest {
		place, err := h.turns.Acquire(c.r.Context(), c.caller.Tenant, 1)
		if err != nil {
			return err
		}
		defer place.Release()
	}
	p, lines, err := h.svc.Lines(c.r.Context(), c.caller.Tenant, c.id, which)
	if errors.Is(err, campaign.ErrNotInAudience) {
		return &refusal{kind: notFound, detail: err.Error()}
	}
	if err != nil {
		return noSuch("campaign", err)
	}
	in, err := h.zones.DefaultZone(c.r.Context(), c.caller.Tenant)
	if err != nil {
		return err
	}
	return c.compute(func() error {
		all, err := h.svc.Preview(&p, lines, in)
		if err != nil {
			return err
		}
		return c.answer(http.StatusOK, previewsView{viewsOf(all, previewViewOf)})
	})
}

// readPreview reads the body, which may be empty.
func (c *call) readPreview(which *campaign.Which, bad *fieldErrors) error {
	body, err := c.body(maxBody)
	if err != nil {
		return err
	}
	if len(body) > 0 {
		var found fieldErrors
		if err := readWhole(body, bad, func(r *reader) { previewFields.read(r, which, &found) }); err != nil {
			return err
		}
		if which.Longest && which.Recipient != "" {
			found.add("longest", "must not be true with recipient", true)
		}
		bad.addAll("body", found)
	}
	return bad.err()
}
