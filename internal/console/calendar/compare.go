package calendar

import (
	"errors"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// mostCompared is the maximum audience to simulate the current start too. A simulation takes a second for about 20,000.
const mostCompared = 200_000

// simulate asks what a start would do at the present start and at the new one. A present start that cannot be simulated, such as one
// that is over, is no reason not to move it.
func (v *moveView) simulate() error {
	change, err := v.change()
	if err != nil {
		return err
	}
	after, err := v.p.API.Campaigns.SimulateChanged(v.p.Context(), v.ID, change)
	var state *client.CampaignState
	switch {
	case errors.As(err, &state) && state.Campaign.Status == client.CampaignStatusDraft:
		v.Asked, v.Why = true, frame.Words(state.Detail) // it has no audience yet
		return nil
	case err != nil:
		return err
	}
	v.Asked, v.After = true, &after
	if v.Audience > mostCompared {
		v.Why = "The audience is large, so only the new start was simulated."
		return nil
	}
	before, err := v.p.API.Campaigns.Simulate(v.p.Context(), v.ID)
	var problem *client.Problem
	switch {
	case err == nil:
		v.Before = &before
	case errors.As(err, &problem) && problem.Status < 500:
		v.Why = "The current start cannot be simulated: " + frame.Words(problem.Detail) + "."
	default:
		return err
	}
	return nil
}

// compared is a line of the comparison.
type compared struct {
	What          string
	Before, After int64
}

// Lines compare the two starts.
func (v *moveView) Lines() (all []compared) {
	before := v.Before
	if before == nil {
		before = &client.Simulation{}
	}
	a := v.After
	return []compared{
		{"on time", before.Accepted, a.Accepted}, {"later than planned", before.Deferred, a.Deferred}, {"limit reached", before.Refused, a.Refused},
		{"do not want it", before.OptedOut, a.OptedOut}, {"cannot be personalised", before.Invalid, a.Invalid},
	}
}

// Change is the difference with its sign.
func (c compared) Change() string {
	if c.After > c.Before {
		return "+" + frame.Number(c.After-c.Before)
	}
	return frame.Number(c.After - c.Before)
}

// Better returns starts with more recipients on time, and links to preview them.
func (v *moveView) Better() (all []betterStart) {
	if v.After == nil || v.Zones {
		return nil
	}
	for _, s := range v.After.BetterStarts {
		all = append(all, betterStart{s.SendAt, s.Accepted, v.p.Same("to", frame.RFC3339(s.SendAt), "to_exact", "")})
	}
	return all
}

// betterStart is a start with more recipients on time.
type betterStart struct {
	At       time.Time
	Accepted int64
	Link     string
}
