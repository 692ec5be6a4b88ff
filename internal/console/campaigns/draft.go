package campaigns

import (
	"cmp"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// draftView is a draft in one of its steps. The draft itself is kept by the API after each step: whoever closes the browser goes on
// where it stands.
type draftView struct {
	client.Campaign
	Step string // empty: all of them
	Form any    // of the step

	Simulated string // update time of the simulated draft; empty if it was not simulated

	AskedChannel string // channel from the links above the message; empty: the channel of the draft
	Channels     []client.Channel
}

// draftStep is a step from nothing to a campaign that runs.
type draftStep struct {
	Path, Name string
	Done       string // what it has by now; empty: it is to be done
}

// Empty reports whether the draft has no message yet. The API takes an empty one: what a program makes of it may do without a text.
func (v *draftView) Empty() bool { return v.ID != "" && len(v.Message) == 0 }

func newDraftView(c client.Campaign) *draftView { return &draftView{Campaign: c} }

// Steps are all of them, in their order.
func (v *draftView) Steps() []draftStep {
	steps := []draftStep{
		{"message", "Message", ""}, {"audience", "Audience", ""}, {"preview", "Preview", ""}, {"when", "When", ""}, {"simulation", "Simulate", ""}, {"start", "Start", ""},
	}
	if len(v.Message) > 0 {
		steps[0].Done = "written, for " + v.Channel
	}
	if v.Audience > 0 {
		steps[1].Done = frame.CountWords(v.Audience, "recipient", "recipients")
	}
	switch {
	case !v.SendAt.IsZero():
		steps[3].Done = "same time for everyone"
	case v.LocalTime != "":
		steps[3].Done = "local time"
	}
	return steps
}

// mayStep reports whether the user's role can open a step.
func mayStep(p *frame.Page, path string) bool {
	switch path {
	case "preview", "simulation":
		return true
	case "start":
		return p.MayStart()
	}
	return p.MayDraft()
}

// showDraft shows a step.
func showDraft(p *frame.Page, step string, v *draftView) error {
	v.Step = step
	return p.Show("campaigndraft", v.title(), v)
}

// againDraft shows a step again, with why it was not accepted.
func againDraft(p *frame.Page, err error, step string, v *draftView) error {
	v.Step = step
	return p.ShowAgain(err, "campaigndraft", v.title(), v)
}

func (v *draftView) title() string {
	if v.ID == "" {
		return "New campaign"
	}
	return frame.CampaignName(v.Campaign)
}

// readDraft reads the draft of the path. One that was started has a page of its own; then view is nil, and the browser is sent
// there.
func readDraft(p *frame.Page) (*draftView, error) {
	var one client.Campaign
	if err := p.ReadExact("/v1/campaigns/"+frame.PathPart(p.Param("id")), &one); err != nil {
		return nil, err
	}
	if one.Status != client.CampaignStatusDraft {
		return nil, p.Done("The campaign has started and cannot be changed.", p.Link("/campaigns/"+one.ID))
	}
	return newDraftView(one), nil
}

// draft returns the handler of a step of a draft.
func draft(step func(p *frame.Page, v *draftView) error) frame.Handler {
	return func(p *frame.Page) error {
		v, err := readDraft(p)
		if v == nil {
			return err
		}
		return step(p, v)
	}
}

// channelOf is the channel that the message is written for.
func (v *draftView) channelOf() client.Channel {
	name := cmp.Or(v.AskedChannel, v.Channel)
	for _, c := range v.Channels {
		if c.Name == name || name == "" && c.Default {
			return c
		}
	}
	return client.Channel{Name: name}
}
