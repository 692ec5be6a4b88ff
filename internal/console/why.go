package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
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

	Sentence  string
	At        time.Time // that the sentence is about
	Rules     []filledRule
	Push      *client.Push
	Campaign  *client.Campaign
	Next      time.Time // when there is a place again; zero: the question does not arise, or never
	Message   bool      // it can be booked then from here, for its message is known
	Recipient *client.Recipient
}

// filledRule is a rule that leaves no place, with what fills it.
type filledRule struct {
	Name    string
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

// why answers why a person was not sent something: at a time, or by a campaign.
func (p *page) why() error {
	view := &whyView{}
	recipient, campaign := p.query("recipient"), p.query("campaign")
	if p.May("campaigns:read") {
		var recent client.CampaignsPage
		if err := p.api.Get(p.ctx(), "/v1/campaigns", url.Values{"page_size": {"50"}}, &recent); err != nil {
			return err
		}
		view.Campaigns = recent.Campaigns
	}
	if len(p.r.URL.Query()) == 0 || recipient == "" && campaign == "" && p.query("at") == "" {
		return p.show("why", "Why was this person not sent?", view)
	}
	var wrong faults
	if recipient == "" {
		wrong.add("recipient", errors.New("say who was not sent something: the id that your programs use"))
	}
	at, err := p.c.cfg.Now().Truncate(time.Second), error(nil)
	if v := p.query("at"); v != "" {
		at, err = p.readLocal(v)
		wrong.add("at", err)
	}
	if err := wrong.problem(); err != nil {
		return p.again(err, "why", "Why was this person not sent?", view)
	}
	view.Asked = true
	p.zoneOf(recipient, view)
	a := &answerWhy{api: p.api, whyView: view, who: recipient, now: p.c.cfg.Now(), campaigns: map[string]client.Campaign{}}
	if campaign != "" {
		err = a.ofCampaign(p.ctx(), campaign)
	} else {
		err = a.atTime(p.ctx(), at)
	}
	if err != nil {
		return p.again(err, "why", "Why was this person not sent?", &whyView{Campaigns: view.Campaigns})
	}
	return p.show("why", "Why was this person not sent?", view)
}

// zoneOf reads what is known of a recipient, so that times can be shown in their zone. Most are not described: that is no error.
func (p *page) zoneOf(recipient string, view *whyView) {
	known, err := p.api.Recipient(p.ctx(), recipient)
	if err != nil {
		return
	}
	view.Recipient = &known
	p.Zones.Recipient = loadZone(known.TimeZone)
}

// answerWhy finds the answer.
type answerWhy struct {
	*whyView
	api       *client.Client
	who       string
	now       time.Time
	campaigns map[string]client.Campaign // that were read
}

// ofCampaign says what became of the person in a campaign.
func (a *answerWhy) ofCampaign(ctx context.Context, id string) error {
	c, err := a.campaign(ctx, id)
	if err != nil {
		return err
	}
	a.Campaign = &c
	line, has, err := a.api.CampaignRecipient(ctx, id, a.who)
	if err != nil {
		return err
	}
	name := "“" + c.Name + "”"
	if !has {
		a.Sentence = fmt.Sprintf("%s is not in the audience of %s: the file that was uploaded has no line for this id, or the campaign is too old to be kept.", a.who, name)
		return nil
	}
	a.At = line.SendAt
	switch string(line.Outcome) {
	case "pending":
		a.Sentence = fmt.Sprintf("%s is in the audience of %s, line %d, and nothing was decided yet: the campaign is %s.", a.who, name, line.Line, c.Status)
	case "invalid":
		a.Sentence = fmt.Sprintf("%s got nothing of %s because line %d is invalid: %s.", a.who, name, line.Line, line.Reason)
	case "opted_out":
		a.Sentence = fmt.Sprintf("%s got nothing of %s because they have opted out (%s).", a.who, name, line.Reason)
	case "refused":
		return a.refused(ctx, line, name)
	default:
		if line.Push == "" {
			a.Sentence = fmt.Sprintf("%s got nothing of %s because the campaign was canceled before it came to them.", a.who, name)
			return nil
		}
		one, err := a.api.Push(ctx, line.Push)
		if err != nil {
			return err
		}
		a.ofPush(one, " of "+name)
	}
	return nil
}

// refused says which rules have refused a recipient of a campaign.
func (a *answerWhy) refused(ctx context.Context, line client.CampaignRecipient, name string) error {
	var found client.RefusalsPage
	if err := a.api.Get(ctx, "/v1/refusals", url.Values{"recipient": {a.who}, "campaign": {a.Campaign.ID}, "page_size": {"1"}}, &found); err != nil {
		return err
	}
	var conflicts []client.Conflict
	if len(found.Refusals) > 0 {
		conflicts = conflictsOf(found.Refusals[0])
	}
	a.Sentence = fmt.Sprintf("%s got nothing of %s because %s.", a.who, name, because(line.Reason, line.Rules))
	a.Message = true
	return a.fill(ctx, line.SendAt, a.Campaign.Channel, a.Campaign.Category, line.Rules, conflicts)
}

// atTime says what became of the push, or the try, that is nearest to a time.
func (a *answerWhy) atTime(ctx context.Context, at time.Time) error {
	a.At = at
	var pushes client.PushesPage
	err := a.api.Get(ctx, "/v1/pushes", url.Values{"recipient": {a.who}, "from": {rfc3339(at.Add(-nearMiss))}, "until": {rfc3339(at.Add(nearMiss))}, "page_size": {"100"}}, &pushes)
	if err != nil {
		return err
	}
	var refusals client.RefusalsPage
	if err := a.api.Get(ctx, "/v1/refusals", url.Values{"recipient": {a.who}, "page_size": {"100"}}, &refusals); err != nil {
		return err
	}
	tried := slices.DeleteFunc(refusals.Refusals, func(r client.Refusal) bool { return wanted(r).Sub(at).Abs() > nearMiss })
	nearest := func(t time.Time) time.Duration { return t.Sub(at).Abs() }
	slices.SortStableFunc(pushes.Pushes, func(a, b client.Push) int { return int(nearest(a.SendAt) - nearest(b.SendAt)) })
	slices.SortStableFunc(tried, func(a, b client.Refusal) int { return int(nearest(wanted(a)) - nearest(wanted(b))) })
	switch {
	case len(tried) > 0 && (len(pushes.Pushes) == 0 || nearest(wanted(tried[0])) <= nearest(pushes.Pushes[0].SendAt)):
		return a.try(ctx, tried[0])
	case len(pushes.Pushes) > 0:
		one, err := a.api.Push(ctx, pushes.Pushes[0].ID)
		if err == nil {
			a.ofPush(one, "")
		}
		return err
	}
	return a.nobodyTried(ctx, at)
}

// wanted is the send time that was refused.
func wanted(r client.Refusal) time.Time {
	if r.RequestedSendAt.IsZero() {
		return r.At
	}
	return r.RequestedSendAt
}

// try explains a refusal.
func (a *answerWhy) try(ctx context.Context, r client.Refusal) error {
	what := "a push"
	if r.Campaign != "" {
		c, err := a.campaign(ctx, r.Campaign)
		if err == nil {
			a.Campaign, what, a.Message = &c, "“"+c.Name+"”", true
		}
	}
	a.Sentence = fmt.Sprintf("%s was to be sent %s then and was not, because %s.", a.who, what, because(r.Reason, r.Rules))
	return a.fill(ctx, wanted(r), r.Channel, r.Category, r.Rules, conflictsOf(r))
}

// nobodyTried says whether there would have been a place.
func (a *answerWhy) nobodyTried(ctx context.Context, at time.Time) error {
	a.Sentence = fmt.Sprintf("Nothing was booked for %s within an hour of that time, and nothing was refused that is still known.", a.who)
	if at.Before(a.now) {
		return nil
	}
	check, err := a.api.Check(ctx, client.NewCheck{Recipient: a.who, SendAt: at})
	switch {
	case err != nil:
		return err
	case check.Allowed:
		a.Sentence += " There is a place for a push then."
		a.Next = check.NextAvailableAt
		return nil
	}
	a.Sentence += " There is no place for a push then: see which sends are in the way."
	a.violated(ctx, check.Violations)
	a.Next = check.NextAvailableAt
	return nil
}

// ofPush says how a push stands.
func (a *answerWhy) ofPush(p client.Push, of string) {
	a.Push, a.At = &p, p.SendAt
	what := "a push" + of
	switch p.Status {
	case client.PushStatusSent:
		a.Sentence = fmt.Sprintf("%s was sent %s: the provider of %s accepted it.", a.who, what, p.Channel)
	case client.PushStatusScheduled:
		a.Sentence = fmt.Sprintf("%s has not been sent %s yet: it is scheduled, and its time has not come.", a.who, what)
		if !p.SendAt.After(a.now) {
			a.Sentence = fmt.Sprintf("%s is about to be sent %s: it is due now.", a.who, what)
		}
		if p.Deferred {
			a.Sentence += " The quota had no place at the time that was asked for, so it was deferred."
		}
		if p.LastError != "" {
			a.Sentence += " An attempt failed (" + p.LastError + ") and is tried again."
		}
	case client.PushStatusSending:
		a.Sentence = fmt.Sprintf("%s is being sent %s at this moment.", a.who, what)
	case client.PushStatusFailed:
		a.Sentence = fmt.Sprintf("%s was not sent %s because the provider of %s did not take it: %s.", a.who, what, p.Channel, orUnknown(p.LastError))
	case client.PushStatusExpired:
		a.Sentence = fmt.Sprintf("%s was not sent %s because it expired before it could be sent: %s.", a.who, what, orUnknown(p.LastError))
	case client.PushStatusCanceled:
		a.Sentence = fmt.Sprintf("%s was not sent %s because it was canceled%s.", a.who, what, because2(p.LastError))
	}
	if p.PossiblyDelivered && p.Status != client.PushStatusSent {
		a.Sentence += " It may have arrived all the same: an attempt ended with an unknown outcome."
	}
}

func orUnknown(text string) string {
	if text == "" {
		return "the reason is not known"
	}
	return text
}

func because2(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// because puts the reason of a refusal into words.
func because(reason string, rules []string) string {
	list := strings.Join(rules, " and ")
	switch reason {
	case "quota-exceeded":
		if len(rules) == 1 {
			return "the rule " + list + " was full"
		}
		return "the rules " + list + " were full"
	case "quiet-hours":
		return "it was quiet hours (" + list + ")"
	case "opted-out":
		return "they have opted out"
	case "tenant-cap-exceeded":
		return "your organisation's cap was used up (" + list + ")"
	}
	if list == "" {
		return "it was refused: " + strings.ReplaceAll(reason, "-", " ")
	}
	return "it was refused: " + strings.ReplaceAll(reason, "-", " ") + " (" + list + ")"
}

// fill shows what fills the rules: as it stands now if the time is still to come, and as it was noted if it has passed.
func (a *answerWhy) fill(ctx context.Context, at time.Time, channel, category string, rules []string, noted []client.Conflict) error {
	a.At = at
	check, err := a.api.Check(ctx, client.NewCheck{Recipient: a.who, SendAt: later(at, a.now), Channel: channel, Category: category})
	if err != nil {
		return err
	}
	a.Next = check.NextAvailableAt
	if at.After(a.now) && len(check.Violations) > 0 {
		a.violated(ctx, check.Violations)
		return nil
	}
	for _, name := range rules {
		a.Rules = append(a.Rules, filledRule{Name: name, Filling: a.fillings(ctx, noted)})
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// violated shows rules as a check found them.
func (a *answerWhy) violated(ctx context.Context, all []client.Violation) {
	for _, v := range all {
		words := fmt.Sprintf("%d in any %s", v.Limit, span(time.Duration(v.WindowSeconds*float64(time.Second))))
		a.Rules = append(a.Rules, filledRule{Name: v.Rule, Words: words, Filling: a.fillings(ctx, v.Conflicts), Omitted: v.ConflictsOmitted + int64(max(0, len(v.Conflicts)-maxFilling))})
	}
}

// fillings reads the pushes that fill a rule, and the names of their campaigns.
func (a *answerWhy) fillings(ctx context.Context, conflicts []client.Conflict) []filling {
	var all []filling
	for _, c := range conflicts[:min(len(conflicts), maxFilling)] {
		f := filling{ID: c.ID, SendAt: c.SendAt}
		if one, err := a.api.Push(ctx, c.ID); err == nil {
			f.Status, f.CampID, f.Campaign = one.Status, one.Campaign, one.Campaign
			if of, err := a.campaign(ctx, one.Campaign); err == nil {
				f.Campaign = of.Name
			}
		}
		all = append(all, f)
	}
	return all
}

// campaign reads a campaign once.
func (a *answerWhy) campaign(ctx context.Context, id string) (client.Campaign, error) {
	if id == "" {
		return client.Campaign{}, &client.Problem{Status: http.StatusNotFound}
	}
	if c, known := a.campaigns[id]; known {
		return c, nil
	}
	c, err := a.api.Campaign(ctx, id)
	if err == nil {
		a.campaigns[id] = c
	}
	return c, err
}

// conflictsOf are the bookings that a refusal names.
func conflictsOf(r client.Refusal) []client.Conflict {
	var all []client.Conflict
	for _, c := range r.Conflicts {
		id, _ := c["id"].(string)
		at, _ := c["send_at"].(string)
		sendAt, err := time.Parse(time.RFC3339Nano, at)
		if id != "" && err == nil {
			all = append(all, client.Conflict{ID: id, SendAt: sendAt})
		}
	}
	return all
}

// bookThen books what a campaign would have sent to a person, at the next free time.
func (p *page) bookThen() error {
	recipient, id := p.form("recipient"), p.form("campaign")
	campaign, err := p.api.Campaign(p.ctx(), id)
	if err != nil {
		return err
	}
	preview, err := p.api.Preview(p.ctx(), id, recipient)
	if err != nil {
		return err
	}
	if len(preview.Messages) != 1 || preview.Messages[0].Error != "" {
		return &client.Problem{Title: "The message can not be made", Status: http.StatusConflict, Detail: "The campaign has no valid line for " + recipient + " any more. Submit a push on the page of the recipient instead"}
	}
	at, err := time.Parse(time.RFC3339Nano, p.form("send_at"))
	if err != nil {
		return &client.Problem{Title: "Bad Request", Status: http.StatusBadRequest, Detail: "The time " + p.form("send_at") + " can not be read"}
	}
	made, err := p.api.Submit(p.ctx(), p.form("once"), client.NewPush{
		Recipient: recipient, Channel: campaign.Channel, Category: campaign.Category, Message: client.Message(preview.Messages[0].Message), SendAt: at, OnConflict: client.NewPushOnConflictDefer,
		Metadata: map[string]any{"campaign": id},
	})
	if err != nil {
		return err
	}
	return p.done("Booked for "+recipient+": it will be sent "+distance(made.SendAt.Sub(p.Now()))+".", p.Link("/pushes/"+made.ID))
}
