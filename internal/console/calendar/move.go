package calendar

import (
	"errors"
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/zone"
)

// moveView is a draft that is to begin at another time, and what that would change.
type moveView struct {
	plannedCampaign
	To     time.Time // the new start; zero: none was chosen. By the clocks of the recipients, it is as they show it, in UTC
	Asked  bool      // both were simulated
	Before *client.Simulation
	After  *client.Simulation
	Why    string // there is no simulation of the present start

	p *frame.Page
}

// moveCampaign shows what another start of a draft would change. Nothing is changed by it.
func moveCampaign(p *frame.Page) error {
	v, err := readMove(p)
	if err != nil {
		return err
	}
	if v.Fixed != "" || p.Query("to") == "" {
		return p.Show("calendarmove", "Move "+v.title(), v)
	}
	var bad frame.Faults
	v.To, err = v.readStart(p.Query("to"), p.Query("to_exact"))
	bad.Add("to", err)
	if err := bad.Problem(); err != nil {
		return v.again(err)
	}
	if err := v.simulate(); err != nil {
		return v.again(err)
	}
	return p.Show("calendarmove", "Move "+v.title(), v)
}

// saveMove gives a draft its new start.
func saveMove(p *frame.Page) error {
	v, err := readMove(p)
	if err != nil {
		return err
	}
	var bad frame.Faults
	v.To, err = v.readStart(p.Field("to"), p.Field("to_exact"))
	bad.Add("to", err)
	if err := bad.Problem(); err != nil {
		return v.again(err)
	}
	change, err := v.change()
	if err != nil {
		return v.again(err)
	}
	moved, err := p.API.Campaigns.ChangeAsOf(p.Context(), v.ID, p.ShownAt(), change)
	if err != nil {
		return v.again(frame.ExplainStale(err))
	}
	shown := planned(moved)
	at := shown.From.In(p.Zones.Shown())
	return p.Done("“"+v.title()+"” now begins "+v.Says(v.To)+".", p.Link("/calendar", "view", p.Query("view"), "at", at.Format("2006-01-02")))
}

func readMove(p *frame.Page) (*moveView, error) {
	c, err := p.API.Campaigns.Get(p.Context(), p.Param("id"))
	if err != nil {
		return nil, err
	}
	v := &moveView{plannedCampaign: planned(c), p: p}
	v.Fixed, v.Link = fixed(c, true), p.Link("/campaigns/"+c.ID)
	return v, nil
}

func (v *moveView) title() string {
	if v.Name == "" {
		return "the campaign " + v.ID
	}
	return v.Name
}

// again shows the form with what was typed and why it was not accepted.
func (v *moveView) again(why error) error {
	var invalid *client.Invalid
	if errors.As(why, &invalid) { // the new start is one field here, whatever the API calls it
		for i := range invalid.Errors {
			switch frame.FieldOf(invalid.Errors[i].Location) {
			case "send_at", "local_time":
				invalid.Errors[i].Location = "to"
			}
		}
	}
	return v.p.ShowAgain(why, "calendarmove", "Move "+v.title(), v)
}

// readStart reads the new start: an instant, or by the clocks of the recipients what they show. The bar of such a campaign begins where
// clocks are furthest ahead. exact is the moment that the field shows, as long as it was not changed: the clocks may show it twice.
func (v *moveView) readStart(written, exact string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, exact)
	if err != nil || !frame.Unchanged(written, v.field(at, v.p.SentZone())) {
		if at, err = time.Parse(time.RFC3339Nano, written); err == nil && v.Zones {
			at = at.UTC().Add(FurthestAhead)
		}
	}
	if err == nil {
		return at, nil
	}
	if !v.Zones {
		return v.p.ReadLocal(written)
	}
	for _, layout := range frame.LocalLayouts {
		if at, err = time.Parse(layout, written); err == nil {
			return at, nil
		}
	}
	return at, fmt.Errorf("%q is not a time. Write it as 2006-01-02T15:04", written)
}

// Field is a start as the form shows it.
func (v *moveView) Field(at time.Time) string { return v.field(at, v.p.FieldZone()) }

func (v *moveView) field(at time.Time, in *time.Location) string {
	if at.IsZero() {
		return ""
	}
	if v.Zones {
		return at.UTC().Format(LocalLayout)
	}
	return frame.LocalIn(at, in)
}

// Present is the present start as the form shows it.
func (v *moveView) Present() string {
	if v.Zones {
		return v.LocalTime
	}
	return v.Field(v.From)
}

// Says is a start in words.
func (v *moveView) Says(at time.Time) string {
	if v.Zones {
		return at.UTC().Format("2006-01-02 15:04:05") + ", local time of each recipient"
	}
	return v.p.PlainTime(at)
}

// Exact is the new start without doubt.
func (v *moveView) Exact() string {
	if v.To.IsZero() {
		return ""
	}
	return frame.RFC3339(v.To)
}

// change is the new start as the API takes it: a campaign that has a local time keeps one.
func (v *moveView) change() (client.CampaignChange, error) {
	if v.LocalTime == "" {
		return client.CampaignChange{SendAt: frame.RFC3339(v.To)}, nil
	}
	shown := v.To.UTC()
	if !v.Zones {
		in := frame.LoadZone(v.TimeZone)
		if in == nil {
			return client.CampaignChange{SendAt: frame.RFC3339(v.To)}, nil
		}
		shown = zone.Shown(v.To, in)
		if !zone.Instant(shown, in).Equal(v.To.Truncate(time.Second)) {
			var bad frame.Faults
			bad.Add("to", fmt.Errorf("clocks in %s show this time twice; the campaign’s local time means the first one", v.TimeZone))
			return client.CampaignChange{}, bad.Problem()
		}
	}
	return client.CampaignChange{LocalTime: shown.Format(LocalLayout)}, nil
}

// Back is the address of the calendar.
func (v *moveView) Back() string {
	at := v.From
	if at.IsZero() {
		at = v.p.Now()
	}
	return v.p.Link("/calendar", "view", v.p.Query("view"), "at", at.In(v.p.Zones.Shown()).Format("2006-01-02"))
}

// Form is the address of this page.
func (v *moveView) Form() string {
	return v.p.Link("/calendar/campaigns/"+frame.PathPart(v.ID), "view", v.p.Query("view"))
}

// View returns the view of the calendar from the URL: month or week.
func (v *moveView) View() string { return v.p.Query("view") }
