package calendar

import (
	"cmp"
	"html/template"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/console/axis"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
)

// calendarView is a month or a week of what is booked ahead.
type calendarView struct {
	Scale                   calendarScale
	At                      time.Time // that is shown
	From, Until             time.Time
	Split                   string // channel or campaign: a map of each; empty: of all
	Channel, Category, ID   string // only those; ID is of a campaign
	Map                     *heatMap
	Parts                   []calendarPart
	MoreParts               int
	Ceilings                []channelCeiling
	Over                    []overHour
	Campaigns               []plannedCampaign // of this time
	Unplanned               []plannedCampaign // drafts without a time
	Drafts                  []plannedCampaign // that have an audience
	MoreCampaigns, MoreBars bool
	Bars                    template.HTML
	MayCampaigns, MayMove   bool

	Audience string   // the id of a draft; empty: of none
	Capacity *heatMap // of it: how many in a hundred have a place
	Found    client.Capacity

	names map[string]string // of campaigns
	p     *frame.Page
}

// How much a calendar shows at most.
const (
	calendarParts     = 6
	calendarBars      = 40
	calendarCampaigns = 500
)

// showCalendar shows how much is booked ahead by hours, beside what the channels can carry, and the campaigns.
func showCalendar(p *frame.Page) error {
	v := &calendarView{
		Scale: readCalendarScale(p.Query("view")), Split: p.Query("split"), Channel: p.Query("channel"), Category: p.Query("category"), ID: p.Query("campaign"), Audience: p.Query("audience"),
		MayCampaigns: p.May(push.ScopeCampaignsRead), MayMove: p.MayDraft(), names: map[string]string{}, p: p,
	}
	if v.Split != "channel" && v.Split != "campaign" {
		v.Split = ""
	}
	v.At = readDay(p.Query("at"), p.Now(), p.Zones.Shown())
	v.From, v.Until = v.Scale.Window(v.At, p.Zones.Shown())
	for _, read := range []func() error{v.readCampaigns, v.readCeilings, v.readCounts, v.readCapacity} {
		if err := read(); err != nil {
			return p.ShowAgain(err, "calendar", "Calendar", v)
		}
	}
	return p.Show("calendar", "Calendar", v)
}

// readDay reads a day, such as 2026-12-01, or a month, such as 2026-12. It returns the current day if the text is invalid.
func readDay(text string, now time.Time, in *time.Location) time.Time {
	for _, layout := range []string{"2006-01-02", "2006-01"} {
		if t, err := time.Parse(layout, text); err == nil {
			return axis.LocalDay(time.Date(t.Year(), t.Month(), t.Day(), 12, 0, 0, 0, in), 0, 0)
		}
	}
	return axis.LocalDay(now.In(in), 0, 0)
}

// readCounts asks how many are booked in each hour. They are asked for by channel, too, to compare each with its ceiling.
func (v *calendarView) readCounts() error {
	o := client.AheadOptions{From: v.From, Until: v.Until, GroupBy: "hour", SplitBy: "channel", Channel: v.Channel, Category: v.Category, Campaign: v.ID}
	found, err := v.p.API.Records.Ahead(v.p.Context(), o)
	if err != nil {
		return err
	}
	counts, over := map[int64]int64{}, map[int64]bool{}
	free := map[string]time.Time{} // by channel, when the messages of the hours so far have left
	for _, g := range found.Groups {
		at, err := time.Parse(time.RFC3339, g.Key)
		if err != nil {
			return err
		}
		counts[at.Unix()] = g.Scheduled
		for _, part := range g.Parts {
			most := v.ceiling(part.Key)
			if most == 0 {
				continue
			}
			free[part.Key] = drained(free[part.Key], at, part.Scheduled, most)
			if part.Scheduled > most {
				over[at.Unix()] = true
				v.Over = append(v.Over, overHour{at, part.Key, part.Scheduled, most, free[part.Key]})
			}
		}
	}
	v.Map = v.heat("heat", "Scheduled messages", counts, 0)
	v.Map.markOver(over)
	if v.Split == "campaign" {
		o.SplitBy = v.Split
		if found, err = v.p.API.Records.Ahead(v.p.Context(), o); err != nil {
			return err
		}
	}
	if v.Split != "" {
		return v.split(found)
	}
	return nil
}

func (v *calendarView) heat(id, title string, counts map[int64]int64, step int64) *heatMap {
	m := newHeatMap(v.From, v.Until, v.p.Zones.Shown(), counts, step)
	m.ID, m.Title, m.Now = id, title, v.p.Now()
	return m
}

// calendarPart is the map of a channel or of a campaign.
type calendarPart struct {
	Key, Name, Link string
	Map             *heatMap
}

// split makes the maps of the largest parts, in the colours of the whole.
func (v *calendarView) split(found client.Ahead) error {
	counts, sums, over := map[string]map[int64]int64{}, map[string]int64{}, map[string]map[int64]bool{}
	for _, g := range found.Groups {
		at, err := time.Parse(time.RFC3339, g.Key)
		if err != nil {
			return err
		}
		for _, part := range g.Parts {
			if counts[part.Key] == nil {
				counts[part.Key], over[part.Key] = map[int64]int64{}, map[int64]bool{}
			}
			counts[part.Key][at.Unix()] = part.Scheduled
			sums[part.Key] += part.Scheduled
		}
	}
	for _, h := range v.Over {
		if v.Split == "channel" {
			over[h.Channel][h.At.Unix()] = true
		}
	}
	var keys []string
	for key := range counts {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b)) })
	for i, key := range keys[:min(len(keys), calendarParts)] {
		part := calendarPart{Key: key, Name: v.partName(key), Link: v.p.Same("split", "", v.Split, key)}
		if key == "" {
			part.Link = "" // there is no filter for those without a campaign
		}
		part.Map = v.heat("heat-"+frame.Number(i+1), part.Name, counts[key], v.Map.Step)
		part.Map.markOver(over[key])
		v.Parts = append(v.Parts, part)
	}
	v.MoreParts = len(keys) - len(v.Parts)
	return nil
}

// partName is a channel or the name of a campaign.
func (v *calendarView) partName(key string) string {
	switch {
	case v.Split == "channel":
		return key
	case key == "":
		return "Without a campaign"
	}
	return v.CampaignName(key)
}

// CampaignName is the name of a campaign, or else its id.
func (v *calendarView) CampaignName(id string) string { return cmp.Or(v.names[id], id) }

// channelCeiling is the number of messages that a channel can send in an hour.
type channelCeiling struct {
	Channel string
	Most    int64
}

// overHour is an hour with more booked messages than the channel can send.
type overHour struct {
	At              time.Time
	Channel         string
	Scheduled, Most int64
	DrainedAt       time.Time // about when its last message has left, if nothing else is sent through the channel
}

// drained returns about when the messages of an hour have left a channel that has sent those before by a time.
func drained(before, at time.Time, scheduled, most int64) time.Time {
	if before.Before(at) {
		before = at
	}
	return before.Add(time.Duration(float64(scheduled) / float64(most) * float64(time.Hour))).Round(time.Minute)
}

// readCeilings asks for what the channels can carry, if the user may see them.
func (v *calendarView) readCeilings() error {
	if !v.p.May(push.ScopeRead) {
		return nil
	}
	all, err := v.p.API.Channels.List(v.p.Context())
	if err != nil {
		return err
	}
	for _, c := range all.Channels {
		one := channelCeiling{Channel: c.Name}
		if per, err := time.ParseDuration(c.Throughput.Per); err == nil && per > 0 {
			one.Most = int64(float64(c.Throughput.Rate) * float64(time.Hour) / float64(per))
		}
		v.Ceilings = append(v.Ceilings, one)
	}
	return nil
}

// ceiling returns the number of messages that a channel can send in an hour; 0 if it is unlimited or unknown.
func (v *calendarView) ceiling(channel string) int64 {
	for _, c := range v.Ceilings {
		if c.Channel == channel {
			return c.Most
		}
	}
	return 0
}
