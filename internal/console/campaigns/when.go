package campaigns

import (
	"errors"
	"fmt"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/zone"
)

// When returns the kind of a draft's time: start, at or local.
func (v *draftView) When() string {
	switch {
	case !v.SendAt.IsZero():
		return "at"
	case v.LocalTime != "":
		return "local"
	}
	return "start"
}

// Defers reports whether who has no place gets the message later.
func (v *draftView) Defers() bool { return v.OnConflict == client.CampaignOnConflictDefer }

// showWhen shows when a draft is sent.
func showWhen(p *frame.Page, v *draftView) error { return showDraft(p, "when", v) }

// Skipped says that the clocks of the zone that all have leave the draft's time out, and when it is sent then; empty: they show it.
func (v *draftView) Skipped() string {
	local, err := zone.ParseLocal(v.LocalTime)
	in := frame.LoadZone(v.TimeZone)
	if err != nil || in == nil || v.TimeZone == "" {
		return ""
	}
	at := zone.Instant(local, in)
	if zone.Shown(at, in).Equal(local) {
		return ""
	}
	return fmt.Sprintf("Clocks in %s skip %s. The campaign is sent right after the change, at %s.", v.TimeZone, local.Format("15:04 on 2 Jan 2006"), at.In(in).Format("15:04 -07:00"))
}

// changeWhen changes when a draft is sent.
func changeWhen(p *frame.Page, v *draftView) error {
	change, err := readWhen(p, v)
	if err == nil {
		_, err = p.API.Campaigns.ChangeAsOf(p.Context(), v.ID, p.ShownAt(), change)
	}
	if err != nil {
		return againDraft(p, frame.ExplainStale(err), "when", v)
	}
	return p.Done("Saved. Next: the simulation.", p.Link("/campaigns/"+v.ID+"/simulation"))
}

// readWhen reads the form. What is empty goes back to its default.
func readWhen(p *frame.Page, v *draftView) (client.CampaignChange, error) {
	var wrong frame.Faults
	unusedTimes(p, v, &wrong)
	c := client.CampaignChange{
		SendAt: client.Null, LocalTime: client.Null, TimeZone: client.Null, Latest: client.Null,
		Spread: orNull(p.Field("spread")), OnConflict: orNull(p.Field("on_conflict")), ExpiresAfter: orNull(p.Field("expires_after")),
	}
	switch p.Field("when") {
	case "at":
		at, err := p.FormTime("send_at")
		wrong.Add("send_at", err)
		c.SendAt = at
	case "local":
		c.LocalTime, c.TimeZone = p.Field("local_time"), orNull(p.Field("time_zone"))
		if c.LocalTime == "" {
			wrong.Add("local_time", errors.New("choose the local time"))
		}
	}
	if p.Field("latest") != "" {
		at, err := p.FormTime("latest")
		wrong.Add("latest", err)
		c.Latest = at
	}
	return c, wrong.Problem()
}

// unusedTimes adds faults for typed times that the chosen kind does not use, so that no user starts a campaign at once who typed a time.
// A time that the draft already has is no fault.
func unusedTimes(p *frame.Page, v *draftView, wrong *frame.Faults) {
	at, local := p.Field("send_at"), p.Field("local_time")
	if p.Field("when") != "at" && at != "" && !frame.Unchanged(at, p.Local(v.SendAt)) {
		wrong.Add("send_at", errors.New("this time is not used yet. Choose “Same time for everyone” above it, or empty the field"))
	}
	if p.Field("when") != "local" && local != "" && !frame.Unchanged(local, v.LocalTime) {
		wrong.Add("local_time", errors.New("this time is not used yet. Choose “At each person’s local time” above it, or empty the field"))
	}
}

// orNull is a text for a change: an empty one removes what is there.
func orNull(text string) any {
	if text == "" {
		return client.Null
	}
	return text
}

// takeStart makes a better start, as a simulation has found it, the time of a draft.
func takeStart(p *frame.Page, v *draftView) error {
	at, err := p.ReadLocal(p.Field("send_at"))
	if err != nil {
		return &client.Problem{Title: "Bad Request", Status: 400, Detail: err.Error()}
	}
	if _, err := p.API.Campaigns.ChangeAsOf(p.Context(), v.ID, p.ShownAt(), client.CampaignChange{SendAt: at}); err != nil {
		return frame.ExplainStale(err)
	}
	return p.Done("Saved the new time and simulated it again.", p.Link("/campaigns/"+v.ID+"/simulation"))
}
