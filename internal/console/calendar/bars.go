package calendar

import (
	"html"
	"html/template"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/console/axis"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/zone"
)

// plannedCampaign is a campaign as a bar of the calendar: from its first send time to the end of its spread.
type plannedCampaign struct {
	client.Campaign
	From, Until time.Time
	Zones       bool   // it starts at local time: From and Until span the first and the last time zone
	Fixed       string // why it cannot be moved; empty: it can
	Link        string // of the campaign
	Move        string // of the page that moves it
}

// The clocks that are furthest ahead of UTC, and furthest behind.
const (
	FurthestAhead  = 14 * time.Hour
	furthestBehind = 12 * time.Hour
)

// planned returns the sending period of a campaign. A draft without a time has a zero From.
func planned(c client.Campaign) plannedCampaign {
	p := plannedCampaign{Campaign: c}
	spread, _ := time.ParseDuration(c.Spread) // the API has written it; without one it is 0
	switch local, err := time.Parse(LocalLayout, c.LocalTime); {
	case !c.SendAt.IsZero():
		p.From = c.SendAt
	case c.LocalTime == "" || err != nil:
		p.From = c.StartedAt
	case c.TimeZone == "":
		p.From, p.Until, p.Zones = local.Add(-FurthestAhead), local.Add(furthestBehind+spread), true
	default:
		if in := frame.LoadZone(c.TimeZone); in != nil {
			p.From = zone.Instant(local, in)
		}
	}
	if !p.Zones && !p.From.IsZero() {
		p.Until = p.From.Add(spread)
	}
	return p
}

// Clocks returns the local start time for people.
func (p plannedCampaign) Clocks() string { return strings.Replace(p.LocalTime, "T", " ", 1) }

// LocalLayout is the format of local times in the API.
const LocalLayout = "2006-01-02T15:04:05"

// fixed returns why a campaign cannot be moved; empty if it can.
func fixed(c client.Campaign, may bool) string {
	switch {
	case c.Status == client.CampaignStatusDraft && !may:
		return "your role cannot change campaigns"
	case c.Status == client.CampaignStatusDraft:
		return ""
	case c.Status == client.CampaignStatusFinished || c.Status == client.CampaignStatusCanceled:
		return "it has ended"
	}
	return "it has started, and only a draft can be moved"
}

// overlaps reports whether some of a campaign lies between two moments.
func (p plannedCampaign) overlaps(from, until time.Time) bool {
	return !p.From.IsZero() && p.From.Before(until) && !p.Until.Before(from)
}

// bars is a drawing of campaigns below a calendar.
type bars struct {
	axis.Axis
	Campaigns []plannedCampaign
}

// barStep is to what a bar that is dragged snaps.
func (b bars) barStep() time.Duration {
	if b.Scale == axis.ScaleWeek {
		return 15 * time.Minute
	}
	return time.Hour
}

// SVG draws the bars. Those that can be moved are links to the page that moves them, which a script lets people drag.
func (b bars) SVG() template.HTML {
	d := &axis.Drawing{Axis: b.Axis}
	height := axis.Top + axis.LaneHeight*len(b.Campaigns) + 4
	d.Add(`<svg class="axis bars" viewBox="0 0 %d %d" role="group" aria-labelledby="bars-title" data-left="%d" data-right="%d" data-from="%d" data-until="%d" data-step="%d" data-zone="%s">`,
		axis.Width, height, axis.Left, axis.Right, b.From.Unix(), b.Until.Unix(), int(b.barStep().Seconds()), html.EscapeString(b.Zone.String()))
	d.Add(`<title id="bars-title">%s</title>`, html.EscapeString(b.Title))
	d.TicksAndDays(height)
	for i, c := range b.Campaigns {
		drawCampaign(d, c, axis.Top+axis.LaneHeight*i)
	}
	d.Moments(height)
	d.Add(`</svg>`)
	return template.HTML(d.Out.String())
}

// drawCampaign draws a bar, at least so wide that it can be taken hold of.
func drawCampaign(d *axis.Drawing, c plannedCampaign, top int) {
	const narrowest = 10
	name := strings.TrimSpace(c.Name)
	if name == "" {
		name = "no name"
	}
	from, until := d.X(c.From), d.X(c.Until)
	until = max(until, from+narrowest)
	says := name + ", " + frame.PhaseWords(c.Phase) + ", from " + d.Stamp(c.From)
	if c.Until.After(c.From) {
		says += " until " + d.Stamp(c.Until)
	}
	if c.Zones {
		says += ", local time of the recipients"
	}
	class := "bar bar-" + string(c.Status)
	if c.Zones {
		class += " bar-zones"
	}
	d.Text("lane-name", 4, top+19, axis.Shortened(name))
	d.Add(`<line class="base" x1="%d" y1="%d" x2="%d" y2="%d"/>`, axis.Left, top+axis.LaneHeight-3, axis.Right, top+axis.LaneHeight-3)
	rect := `<rect x="` + axis.PX(from) + `" y="` + axis.PX(float64(top+5)) + `" width="` + axis.PX(until-from) + `" height="18" rx="3"/>`
	if c.Fixed != "" {
		d.Add(`<g class="%s"><title>%s. It cannot be moved: %s.</title>%s</g>`, class, html.EscapeString(says), html.EscapeString(c.Fixed), rect)
		return
	}
	d.Add(`<a class="%s" href="%s" data-start="%d" aria-label="%s"><title>%s</title>%s</a>`,
		class, html.EscapeString(c.Move), c.From.Unix(), html.EscapeString("Move "+says), html.EscapeString(says), rect)
}
