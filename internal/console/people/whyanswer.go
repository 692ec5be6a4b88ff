package people

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// answerWhy finds the answer.
type answerWhy struct {
	*whyView
	api       *client.Client
	now       time.Time
	campaigns map[string]client.Campaign // that were read
}

// ofCampaign reports the outcome of the person in a campaign.
func (a *answerWhy) ofCampaign(ctx context.Context, id string) error {
	c, err := a.campaign(ctx, id)
	if err != nil {
		return err
	}
	a.Campaign = &c
	line, has, err := a.api.Campaigns.Recipient(ctx, id, a.Who)
	if err != nil {
		return err
	}
	name := frame.QuotedName(c)
	if !has {
		a.Sentence = fmt.Sprintf("%s is not in the audience of %s: the uploaded file has no row for this id, or the campaign is no longer stored.", a.Who, name)
		return nil
	}
	a.At, a.Unknown = line.SendAt, false
	switch string(line.Outcome) {
	case "pending":
		a.Sentence = fmt.Sprintf("%s is in the audience of %s, line %d, and was not processed yet: the campaign is %s.", a.Who, name, line.Line, frame.PhaseWords(c.Phase))
	case "invalid":
		a.Sentence = fmt.Sprintf("%s did not get %s because line %d is invalid: %s.", a.Who, name, line.Line, line.Reason)
	case "opted_out":
		a.Sentence = fmt.Sprintf("%s did not get %s because they had opted out.", a.Who, name)
		a.Message = true
		return a.fill(ctx, line.SendAt, c.Channel, c.Category, nil, nil)
	case "refused":
		return a.refused(ctx, line, name)
	default:
		if line.Push == "" {
			a.Sentence = fmt.Sprintf("%s did not get %s because the campaign was canceled first.", a.Who, name)
			return nil
		}
		one, err := a.api.Pushes.Get(ctx, line.Push)
		if err != nil {
			return err
		}
		return a.ofPush(ctx, one, " of "+name)
	}
	return nil
}

// refused names the rules that refused a recipient of a campaign.
func (a *answerWhy) refused(ctx context.Context, line client.CampaignRecipient, name string) error {
	var found client.RefusalsPage
	if err := a.api.Get(ctx, "/v1/refusals", url.Values{"recipient": {a.Who}, "campaign": {a.Campaign.ID}, "page_size": {"1"}}, &found); err != nil {
		return err
	}
	var conflicts []client.Conflict
	if len(found.Refusals) > 0 {
		conflicts = conflictsOf(found.Refusals[0])
	}
	a.Sentence = fmt.Sprintf("%s did not get %s because %s.", a.Who, name, frame.BecauseOf(line.Reason, line.Rules))
	if line.Reason == frame.TenantCap {
		a.At = line.SendAt
		return nil
	}
	a.Message = true
	return a.fill(ctx, line.SendAt, a.Campaign.Channel, a.Campaign.Category, line.Rules, conflicts)
}

// atTime reports the outcome of the push or refusal nearest to a time.
func (a *answerWhy) atTime(ctx context.Context, at time.Time) error {
	a.At = at
	var pushes client.PushesPage
	err := a.api.Get(ctx, "/v1/pushes", url.Values{"recipient": {a.Who}, "from": {frame.RFC3339(at.Add(-nearMiss))}, "until": {frame.RFC3339(at.Add(nearMiss))}, "page_size": {"100"}}, &pushes)
	if err != nil {
		return err
	}
	var refusals client.RefusalsPage
	if err := a.api.Get(ctx, "/v1/refusals", url.Values{"recipient": {a.Who}, "page_size": {"100"}}, &refusals); err != nil {
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
		one, err := a.api.Pushes.Get(ctx, pushes.Pushes[0].ID)
		if err != nil {
			return err
		}
		return a.ofPush(ctx, one, "")
	}
	return a.nothingDue(ctx, at)
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
	what := "a message"
	if r.Campaign != "" {
		c, err := a.campaign(ctx, r.Campaign)
		if err == nil {
			a.Campaign, what, a.Message = &c, frame.QuotedName(c), true
		}
	}
	a.Sentence = fmt.Sprintf("%s did not get %s then, because %s.", a.Who, what, frame.BecauseOf(r.Reason, r.Rules))
	if r.Reason == frame.TenantCap {
		a.At = wanted(r)
		return nil
	}
	return a.fill(ctx, wanted(r), r.Channel, r.Category, r.Rules, conflictsOf(r))
}

// nothingDue reports whether a message would have been allowed.
func (a *answerWhy) nothingDue(ctx context.Context, at time.Time) error {
	when := "that time"
	if a.Untimed {
		when = "now"
	}
	a.Sentence = fmt.Sprintf("No message to %s was scheduled or refused within an hour of %s.", a.Who, when)
	if a.Untimed {
		a.Sentence += " Enter the planned time or the campaign to ask about another message."
	}
	check, err := a.check(ctx, client.NewCheck{Recipient: a.Who, SendAt: later(at, a.now)})
	switch {
	case err != nil || at.Before(a.now) || check.OptedOut.All:
		return err
	case check.Allowed:
		a.Sentence += " A message without a category is allowed then."
		a.Next = check.NextAvailableAt
		return nil
	}
	a.Sentence += " No message is allowed then: see the messages in the way below."
	a.violated(ctx, check.Violations)
	a.Next = check.NextAvailableAt
	return nil
}
