package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/sendquota/sendquota/client"
)

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
	line, has, err := a.api.Campaigns.Recipient(ctx, id, a.who)
	if err != nil {
		return err
	}
	name := quotedName(c)
	if !has {
		a.Sentence = fmt.Sprintf("%s is not in the audience of %s: the file that was uploaded has no line for this id, or the campaign is too old to be kept.", a.who, name)
		return nil
	}
	a.At = line.SendAt
	switch string(line.Outcome) {
	case "pending":
		a.Sentence = fmt.Sprintf("%s is in the audience of %s, line %d, and nothing was decided yet: the campaign is %s.", a.who, name, line.Line, phaseWords(c.Phase))
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
		one, err := a.api.Pushes.Get(ctx, line.Push)
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
	refused := len(refusals.Refusals) > 0
	tried := slices.DeleteFunc(refusals.Refusals, func(r client.Refusal) bool { return wanted(r).Sub(at).Abs() > nearMiss })
	nearest := func(t time.Time) time.Duration { return t.Sub(at).Abs() }
	slices.SortStableFunc(pushes.Pushes, func(a, b client.Push) int { return int(nearest(a.SendAt) - nearest(b.SendAt)) })
	slices.SortStableFunc(tried, func(a, b client.Refusal) int { return int(nearest(wanted(a)) - nearest(wanted(b))) })
	switch {
	case len(tried) > 0 && (len(pushes.Pushes) == 0 || nearest(wanted(tried[0])) <= nearest(pushes.Pushes[0].SendAt)):
		return a.try(ctx, tried[0])
	case len(pushes.Pushes) > 0:
		one, err := a.api.Pushes.Get(ctx, pushes.Pushes[0].ID)
		if err == nil {
			a.ofPush(one, "")
		}
		return err
	}
	if !refused {
		if known, err := a.anything(ctx); err != nil || !known {
			return err
		}
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
			a.Campaign, what, a.Message = &c, quotedName(c), true
		}
	}
	a.Sentence = fmt.Sprintf("%s was to be sent %s then and was not, because %s.", a.who, what, because(r.Reason, r.Rules))
	return a.fill(ctx, wanted(r), r.Channel, r.Category, r.Rules, conflictsOf(r))
}

// anything reports whether anything is known of the person. Where nothing is, that is the answer.
func (a *answerWhy) anything(ctx context.Context) (bool, error) {
	var pushes client.PushesPage
	if err := a.api.Get(ctx, "/v1/pushes", url.Values{"recipient": {a.who}, "page_size": {"1"}}, &pushes); err != nil || len(pushes.Pushes) > 0 {
		return true, err
	}
	_, err := a.api.Recipients.Get(ctx, a.who)
	var problem *client.Problem
	switch {
	case err == nil, errors.As(err, &problem) && problem.Status == http.StatusForbidden:
		return true, nil
	case errors.As(err, &problem) && problem.Status == http.StatusNotFound:
		a.At = time.Time{}
		a.Sentence = fmt.Sprintf("Nothing is known of %s: no push for this id is kept, none was refused, and nobody has described the person. See whether the id is written as your programs write it.", a.who)
		return false, nil
	}
	return false, err
}

// nobodyTried says whether there would have been a place.
func (a *answerWhy) nobodyTried(ctx context.Context, at time.Time) error {
	when := "that time"
	if a.Untimed {
		when = "now"
	}
	a.Sentence = fmt.Sprintf("Nothing was booked for %s within an hour of %s, and nothing was refused that is still known.", a.who, when)
	if a.Untimed {
		a.Sentence += " Give the time at which they should have got something, or the campaign, to ask about another one."
	}
	if at.Before(a.now) {
		return nil
	}
	check, err := a.api.Quota.Check(ctx, client.NewCheck{Recipient: a.who, SendAt: at})
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
