package people

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// fill shows what fills the rules: as it stands now if the time is still to come, and as it was noted if it has passed.
func (a *answerWhy) fill(ctx context.Context, at time.Time, channel, category string, rules []string, noted []client.Conflict) error {
	a.At = at
	check, err := a.check(ctx, client.NewCheck{Recipient: a.Who, SendAt: later(at, a.now), Channel: channel, Category: category})
	if err != nil {
		return err
	}
	if a.Next = check.NextAvailableAt; at.After(a.now) && len(check.Violations) > 0 {
		a.violated(ctx, check.Violations)
		return nil
	}
	if len(rules) > 0 { // the record does not name the rule of each send
		a.Rules = []filledRule{{Name: strings.Join(rules, " and "), Filling: a.fillings(ctx, noted), Omitted: int64(max(0, len(noted)-maxFilling))}}
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
		a.Rules = append(a.Rules, filledRule{Name: v.Rule, Words: frame.RuleWords(v), Filling: a.fillings(ctx, v.Conflicts), Omitted: v.ConflictsOmitted + int64(max(0, len(v.Conflicts)-maxFilling))})
	}
}

// fillings reads the pushes that fill a rule, and the names of their campaigns.
func (a *answerWhy) fillings(ctx context.Context, conflicts []client.Conflict) []filling {
	var all []filling
	for _, c := range conflicts[:min(len(conflicts), maxFilling)] {
		f := filling{ID: c.ID, SendAt: c.SendAt}
		if one, err := a.api.Pushes.Get(ctx, c.ID); err == nil {
			f.Status, f.CampID, f.Campaign = one.Status, one.Campaign, one.Campaign
			if of, err := a.campaign(ctx, one.Campaign); err == nil {
				f.Campaign = frame.CampaignName(of)
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
	c, err := a.api.Campaigns.Get(ctx, id)
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
