package people

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// nearMiss is the maximum distance of a push or a refusal from the time in question.
const nearMiss = time.Hour

// maxFilling is the maximum number of sends per rule that are shown with their campaigns. Each takes a call.
const maxFilling = 20

// whyView explains why a person did not get a message.
type whyView struct {
	Campaigns []client.Campaign // to choose from, the newest first
	Asked     bool
	Untimed   bool // no time was given: the answer is about now

	Who     string   // the id of the person
	Address string   // the address that found the person; empty if the id did
	Several []string // the ids of those who have the address that was typed
	Unknown bool     // no person was found

	Sentence string
	At       time.Time // that the sentence is about
	Rules    []filledRule
	Push     *client.Push
	Campaign *client.Campaign
	Next     time.Time // when there is a place again; zero: the question does not arise, or never
	Message  bool      // it can be booked then from here, for its message is known
}

// filledRule is a rule that leaves no place, with what fills it.
type filledRule struct {
	Name    string // of several rules together: joined
	Words   string // such as 5 in any 1 h; empty: the rule is not known any more
	Filling []filling
	Omitted int64
}

// filling is a send that takes a place.
type filling struct {
	ID       string
	SendAt   time.Time
	Status   client.PushStatus // empty: the push is not kept any more
	Campaign string            // its name, or id; empty: of none
	CampID   string
}

const whyTitle = "Why didn’t they get it?"

// showWhy answers why a person was not sent something: at a time, or by a campaign.
func showWhy(p *frame.Page) error {
	view := &whyView{}
	recipient, campaign := p.Query("recipient"), p.Query("campaign")
	if p.May("campaigns:read") {
		var recent client.CampaignsPage
		if err := p.API.Get(p.Context(), "/v1/campaigns", url.Values{"page_size": {"50"}}, &recent); err != nil {
			return err
		}
		view.Campaigns = recent.Campaigns
	}
	if len(p.Request.URL.Query()) == 0 || recipient == "" && campaign == "" && p.Query("at") == "" {
		return p.Show("why", whyTitle, view)
	}
	var wrong frame.Faults
	if recipient == "" {
		wrong.Add("recipient", errors.New("enter a customer id, an e-mail address or a phone number"))
	}
	a := &answerWhy{api: p.API, whyView: view, now: p.Now(), campaigns: map[string]client.Campaign{}}
	if err := a.find(p.Context(), recipient); err != nil {
		return p.ShowAgain(err, "why", whyTitle, &whyView{Campaigns: view.Campaigns})
	}
	if err := p.ZoneOf(a.Who); err != nil {
		return p.ShowAgain(err, "why", whyTitle, view)
	}
	at, err := p.Now().Truncate(time.Second), error(nil)
	if v := p.Query("at"); v != "" {
		at, err = p.ReadTime(v, p.TypedIn(p.Request.URL.Query()))
		wrong.Add("at", err)
	} else {
		view.Untimed = true
	}
	if err := wrong.Problem(); err != nil {
		return p.ShowAgain(err, "why", whyTitle, view)
	}
	view.Asked = true
	switch {
	case len(view.Several) > 0:
		view.Sentence = "Several people have the address " + recipient + ". Choose one of them."
	case campaign != "":
		err = a.ofCampaign(p.Context(), campaign)
	case view.Unknown:
		view.Sentence = "No recipient found for " + recipient + ": no recipient has this id or address, and no message to this id is stored. Check the spelling."
	default:
		err = a.atTime(p.Context(), at)
	}
	if err != nil {
		return p.ShowAgain(err, "why", whyTitle, &whyView{Campaigns: view.Campaigns})
	}
	return p.Show("why", whyTitle, view)
}

// bookThen books what a campaign would have sent to a person, at the next free time.
func bookThen(p *frame.Page) error {
	recipient, id := p.Field("recipient"), p.Field("campaign")
	if err := p.ZoneOfForm(recipient); err != nil {
		return err
	}
	campaign, err := p.API.Campaigns.Get(p.Context(), id)
	if err != nil {
		return err
	}
	preview, err := p.API.Campaigns.Preview(p.Context(), id, client.PreviewForm{Recipient: recipient})
	if err != nil {
		return err
	}
	if len(preview.Messages) != 1 || preview.Messages[0].Error != "" {
		return &client.Problem{Title: "The message cannot be personalised", Status: http.StatusConflict, Detail: "The campaign has no valid line for " + recipient + " any more. Send a message from the recipient’s page instead"}
	}
	at, err := time.Parse(time.RFC3339Nano, p.Field("send_at"))
	if err != nil {
		return &client.Problem{Title: "Bad Request", Status: http.StatusBadRequest, Detail: "The time " + p.Field("send_at") + " is not readable"}
	}
	made, err := p.API.Pushes.Submit(p.Context(), p.Field("once"), client.NewPush{
		Recipient: recipient, To: preview.Messages[0].To, Channel: campaign.Channel, Category: campaign.Category, Message: client.Message(preview.Messages[0].Message), SendAt: at, OnConflict: client.NewPushOnConflictDefer,
		Metadata: map[string]any{"campaign": id},
	})
	if err != nil {
		return p.ShowAgain(err, "why", whyTitle, &whyView{})
	}
	return p.Done("Scheduled for "+recipient+", for "+p.PlainTime(made.SendAt)+".", p.Link("/pushes/"+made.ID))
}
