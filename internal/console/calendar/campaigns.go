package calendar

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sendquota/sendquota/internal/console/axis"

	"github.com/sendquota/sendquota/client"
)

// readCampaigns reads the campaigns, the latest first, if the user may see them: those of this time become bars.
func (v *calendarView) readCampaigns() error {
	if !v.MayCampaigns {
		return nil
	}
	n := 0
	for c, err := range v.p.API.Campaigns.List(v.p.Context(), client.CampaignsOptions{}) {
		if err != nil {
			return err
		}
		if n++; n > calendarCampaigns {
			v.MoreCampaigns = true
			break
		}
		v.names[c.ID] = c.Name
		if v.Channel == "" || c.Channel == v.Channel {
			v.addCampaign(c)
		}
	}
	slices.SortStableFunc(v.Campaigns, func(a, b plannedCampaign) int { return cmp.Or(a.From.Compare(b.From), strings.Compare(a.ID, b.ID)) })
	v.drawBars()
	return nil
}

func (v *calendarView) addCampaign(c client.Campaign) {
	p := planned(c)
	p.Fixed, p.Link = fixed(c, v.MayMove), v.p.Link("/campaigns/"+c.ID)
	p.Move = v.p.Link("/calendar/campaigns/"+c.ID, "view", v.p.Query("view"))
	if c.Status == client.CampaignStatusDraft && c.Audience > 0 {
		v.Drafts = append(v.Drafts, p)
	}
	switch {
	case v.ID != "" && v.ID != c.ID:
	case p.overlaps(v.From, v.Until):
		v.Campaigns = append(v.Campaigns, p)
	case p.From.IsZero() && c.Status == client.CampaignStatusDraft:
		v.Unplanned = append(v.Unplanned, p)
	}
}

// readCapacity reads the share of a draft's audience that can be reached at each hour.
func (v *calendarView) readCapacity() (err error) {
	if v.Audience == "" || !v.MayCampaigns || !v.Until.After(v.p.Now()) {
		return nil
	}
	o := client.CampaignCapacityOptions{From: v.From, Until: v.Until, TimeZone: v.p.Zones.Shown().String()}
	if v.Found, err = v.p.API.Campaigns.Capacity(v.p.Context(), v.Audience, o); err != nil {
		return err
	}
	counts, days := map[int64]int64{}, map[string]int64{}
	for _, h := range v.Found.Hours {
		counts[h.At.Unix()] = percentOf(h.Free, v.Found.Sample)
	}
	for _, d := range v.Found.Days {
		days[d.Day] = percentOf(d.Free, v.Found.Sample)
	}
	v.Capacity = v.heat("capacity", "Reachable share of "+v.CampaignName(v.Audience), counts, 100/heatLevels)
	v.Capacity.Suffix = " %"
	for i, d := range v.Capacity.Days {
		v.Capacity.Days[i].Best = days[d.Date.Format("2006-01-02")]
	}
	return nil
}

// percentOf is a part of a whole in percent, rounded: not to 0 if it is something, and not to 100 if it is not all.
func percentOf(part, whole int64) int64 {
	switch {
	case part <= 0 || whole <= 0:
		return 0
	case part >= whole:
		return 100
	}
	return min(max((200*part+whole)/(2*whole), 1), 99)
}

// drawBars draws the campaigns of this time.
func (v *calendarView) drawBars() {
	if len(v.Campaigns) == 0 {
		return
	}
	shown := v.Shown()
	v.MoreBars = len(shown) < len(v.Campaigns)
	scale := axis.ScaleMonth
	if v.Scale == calendarWeek {
		scale = axis.ScaleWeek
	}
	v.Bars = bars{axis.Axis{From: v.From, Until: v.Until, Zone: v.p.Zones.Shown(), Scale: scale, Now: v.p.Now(), Title: "Campaigns"}, shown}.SVG()
}

// Name returns the name of the month or week.
func (v *calendarView) Name() string {
	if v.Scale == calendarWeek {
		last := axis.LocalDay(v.Until, 0, -1)
		return "Week from " + v.From.Format("Mon 2 January") + " to " + last.Format("Mon 2 January 2006")
	}
	return v.From.Format("January 2006")
}

// Earlier, Later and Today return the addresses of the previous, the next and the current period.
func (v *calendarView) Earlier() string { return v.shifted(-1) }

// Later is Earlier, the other way.
func (v *calendarView) Later() string { return v.shifted(1) }

// Today is the address of the calendar of now.
func (v *calendarView) Today() string { return v.p.Same("at", "") }

func (v *calendarView) shifted(by int) string {
	return v.p.Same("at", v.Scale.Shift(v.At, by, v.p.Zones.Shown()).Format("2006-01-02"))
}

// Scales and Splits are the choices of the calendar with their addresses.
func (v *calendarView) Scales() []axis.Choice {
	at := v.At.Format("2006-01-02")
	return []axis.Choice{
		{Name: "Month", Link: v.p.Same("view", "month", "at", at), Current: v.Scale == calendarMonth},
		{Name: "Week", Link: v.p.Same("view", "week", "at", at), Current: v.Scale == calendarWeek},
	}
}

// Splits lists the ways to split the map.
func (v *calendarView) Splits() []axis.Choice {
	return []axis.Choice{
		{Name: "All", Link: v.p.Same("split", ""), Current: v.Split == ""},
		{Name: "By channel", Link: v.p.Same("split", "channel"), Current: v.Split == "channel"},
		{Name: "By campaign", Link: v.p.Same("split", "campaign"), Current: v.Split == "campaign"},
	}
}

// Day is the day that the calendar shows, for a field.
func (v *calendarView) Day() string { return v.At.Format("2006-01-02") }

// FirstOver are the hours above the ceiling that are listed, and MoreOver is how many others there are.
func (v *calendarView) FirstOver() []overHour { return v.Over[:min(len(v.Over), mostOver)] }

// MoreOver returns the number of hours above the ceiling that are not listed.
func (v *calendarView) MoreOver() int { return len(v.Over) - len(v.FirstOver()) }

const mostOver = 20

// Shown are the campaigns that are drawn.
func (v *calendarView) Shown() []plannedCampaign {
	return v.Campaigns[:min(len(v.Campaigns), calendarBars)]
}

// HourNames are the columns of a table of hours.
func (v *calendarView) HourNames() (names []string) {
	for hour := range 24 {
		names = append(names, fmt.Sprintf("%02d", hour))
	}
	return names
}
