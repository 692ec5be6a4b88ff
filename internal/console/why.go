package console

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/sendquota/sendquota/client"
)

// nearMiss is how far from the time in question a push or a refusal may be that is taken to be the one that is asked for.
const nearMiss = time.Hour

// maxFilling is how many of the sends that fill a rule are shown with their campaigns: each is read by itself.
const maxFilling = 20

// whyView is the answer to why somebody was not sent something.
type whyView struct {
	Campaigns []client.Campaign // to choose from, the newest first
	Asked     bool
	Untimed   bool // no time was given: the answer is about now

	Who     string   // the id of the person
	Address string   // by which the person was found; empty: by the id
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
func showWhy(p *page) error {
	view := &whyView{}
	recipient, campaign := p.Query("recipient"), p.Query("campaign")
	if p.May("campaigns:read") {
		var recent client.CampaignsPage
		if err := p.api.Get(p.ctx(), "/v1/campaigns", url.Values{"page_size": {"50"}}, &recent); err != nil {
			return err
		}
		view.Campaigns = recent.Campaigns
	}
	if len(p.r.URL.Query()) == 0 || recipient == "" && campaign == "" && p.Query("at") == "" {
		return p.show("why", whyTitle, view)
	}
	var wrong faults
	if recipient == "" {
		wrong.add("recipient", errors.New("enter a customer id, an e-mail address or a phone number"))
	}
	a := &answerWhy{api: p.api, whyView: view, now: p.Now(), campaigns: map[string]client.Campaign{}}
	if err := a.find(p.ctx(), recipient); err != nil {
		return p.again(err, "why", whyTitle, &whyView{Campaigns: view.Campaigns})
	}
	if err := p.zoneOf(a.Who); err != nil {
		return p.again(err, "why", whyTitle, view)
	}
	at, err := p.Now().Truncate(time.Second), error(nil)
	if v := p.Query("at"); v != "" {
		at, err = p.ReadTime(v, p.TypedIn(p.r.URL.Query()))
		wrong.add("at", err)
	} else {
		view.Untimed = true
	}
	if err := wrong.problem(); err != nil {
		return p.again(err, "why", whyTitle, view)
	}
	view.Asked = true
	switch {
	case len(view.Several) > 0:
		view.Sentence = "Several people have the address " + recipient + ". Choose one of them."
	case campaign != "":
		err = a.ofCampaign(p.ctx(), campaign)
	case view.Unknown:
		view.Sentence = "Nobody found for " + recipient + ": no recipient has this id or address, and no message to this id is stored. Check the spelling."
	default:
		err = a.atTime(p.ctx(), at)
	}
	if err != nil {
		return p.again(err, "why", whyTitle, &whyView{Campaigns: view.Campaigns})
	}
	return p.show("why", whyTitle, view)
}

// bookThen books what a campaign would have sent to a person, at the next free time.
func bookThen(p *page) error {
	recipient, id := p.Field("recipient"), p.Field("campaign")
	if err := p.zoneOfForm(recipient); err != nil {
		return err
	}
	campaign, err := p.api.Campaigns.Get(p.ctx(), id)
	if err != nil {
		return err
	}
	preview, err := p.api.Campaigns.Preview(p.ctx(), id, client.PreviewForm{Recipient: recipient})
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
	made, err := p.api.Pushes.Submit(p.ctx(), p.Field("once"), client.NewPush{
		Recipient: recipient, To: preview.Messages[0].To, Channel: campaign.Channel, Category: campaign.Category, Message: client.Message(preview.Messages[0].Message), SendAt: at, OnConflict: client.NewPushOnConflictDefer,
		Metadata: map[string]any{"campaign": id},
	})
	if err != nil {
		return p.again(err, "why", whyTitle, &whyView{})
	}
	return p.done("Scheduled for "+recipient+", for "+p.PlainTime(made.SendAt)+".", p.Link("/pushes/"+made.ID))
}
