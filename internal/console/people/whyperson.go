package people

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// find finds the person that was typed: by the id, or else by an address.
func (a *answerWhy) find(ctx context.Context, typed string) error {
	a.Who = typed
	if typed == "" {
		return nil
	}
	if known, err := a.known(ctx); err != nil || known {
		return err
	}
	var found client.RecipientsPage
	err := a.api.Get(ctx, "/v1/recipients", url.Values{"address": {typed}, "page_size": {"20"}}, &found)
	if err != nil {
		return err
	}
	switch len(found.Recipients) {
	case 0:
		a.Unknown = true
	case 1:
		a.Who, a.Address = found.Recipients[0].Recipient, typed
	default:
		for _, one := range found.Recipients {
			a.Several = append(a.Several, one.Recipient)
		}
	}
	return nil
}

// known reports whether anything is known of the id, or the user may not see it.
func (a *answerWhy) known(ctx context.Context) (bool, error) {
	_, err := a.api.Recipients.Get(ctx, a.Who)
	var problem *client.Problem
	switch {
	case err == nil, errors.As(err, &problem) && problem.Status == http.StatusForbidden:
		return true, nil
	case !errors.As(err, &problem) || problem.Status != http.StatusNotFound:
		return false, err
	}
	of := url.Values{"recipient": {a.Who}, "page_size": {"1"}}
	var pushes client.PushesPage
	if err := a.api.Get(ctx, "/v1/pushes", of, &pushes); err != nil || len(pushes.Pushes) > 0 {
		return true, err
	}
	var refusals client.RefusalsPage
	err = a.api.Get(ctx, "/v1/refusals", of, &refusals)
	return len(refusals.Refusals) > 0, err
}

// check asks whether a push would find a place. A person who has opted out gets an explanation, and no offer.
func (a *answerWhy) check(ctx context.Context, c client.NewCheck) (client.Check, error) {
	found, err := a.api.Quota.Check(ctx, c)
	if out := optOutWords(found.OptedOut); err == nil && out != "" {
		a.Sentence += " They have opted out of " + out + ": they cannot get such a message."
		a.Message, found.NextAvailableAt = false, time.Time{}
	}
	return found, err
}

// optOutWords names opt-outs; empty: there are none.
func optOutWords(o client.OptOuts) string {
	if o.All {
		return "everything"
	}
	var all []string
	for _, channel := range o.Channels {
		all = append(all, "the channel "+channel)
	}
	for _, category := range o.Categories {
		all = append(all, "the category "+category)
	}
	return strings.Join(all, " and ")
}

// held names the reason why a push waits: a pause, its channel or, if it is due, quiet hours.
func (a *answerWhy) held(ctx context.Context, p client.Push) error {
	if c, err := a.campaign(ctx, p.Campaign); err == nil && c.Phase == client.CampaignPhasePaused {
		a.Sentence += " Its campaign is paused. No message of it is sent until you resume the campaign."
		return nil
	}
	if p.SendAt.After(a.now) {
		return nil
	}
	if p.Held.By == client.HeldByPause && (p.Held.Until.IsZero() || p.Held.Until.After(a.now)) {
		a.Sentence += " It waits, because " + frame.HeldWords(p.Held.Scope) + ". It is sent after sending resumes."
		return nil
	}
	if p.Held.By == client.HeldByChannel {
		a.Sentence += " It waits, because your channel " + p.Channel + " sends nothing: " + p.Held.Problem + ". It is sent when the channel sends again."
		return nil
	}
	found, err := a.api.Quota.Check(ctx, client.NewCheck{Recipient: a.Who, SendAt: a.now, Channel: p.Channel, Category: p.Category})
	for _, v := range found.Violations {
		if v.Per == "" && !v.Until.IsZero() { // only quiet hours have an end without a period
			a.Sentence += " Quiet hours (" + v.Rule + ") delay it until " + frame.RFC3339(v.Until) + "."
		}
	}
	return err
}
