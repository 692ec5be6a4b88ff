package calendar

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/console/axis"

	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/console/golden"

	"github.com/sendquota/sendquota/client"
)

// TestCalendarScale_Window: months begin on their first day, weeks on Monday, by the clocks of the zone.
func TestCalendarScale_Window(t *testing.T) {
	t.Parallel()
	berlin := frame.LoadZone("Europe/Berlin")
	for _, row := range []struct {
		scale           calendarScale
		at, from, until string
	}{
		{calendarMonth, "2026-10-31T23:30:00Z", "2026-10-31T23:00:00Z", "2026-11-30T23:00:00Z"},
		{calendarMonth, "2026-10-10T00:00:00Z", "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z"},
		{calendarWeek, "2026-10-25T12:00:00Z", "2026-10-18T22:00:00Z", "2026-10-25T23:00:00Z"},
		{calendarWeek, "2026-10-19T00:00:00Z", "2026-10-18T22:00:00Z", "2026-10-25T23:00:00Z"},
		{calendarWeek, "2026-10-18T21:59:59Z", "2026-10-11T22:00:00Z", "2026-10-18T22:00:00Z"},
	} {
		at, _ := time.Parse(time.RFC3339, row.at)
		from, until := row.scale.Window(at, berlin)
		if frame.RFC3339(from) != row.from || frame.RFC3339(until) != row.until {
			t.Errorf("the %s of %s is from %s until %s", row.scale, row.at, frame.RFC3339(from), frame.RFC3339(until))
		}
		later, _ := row.scale.Window(row.scale.Shift(at, 1, berlin), berlin)
		if !later.Equal(until) {
			t.Errorf("behind the %s of %s comes %s", row.scale, row.at, frame.RFC3339(later))
		}
		earlier := row.scale.Shift(at, -1, berlin)
		if _, until := row.scale.Window(earlier, berlin); !until.Equal(from) {
			t.Errorf("the %s before the %s ends at %s", row.scale, row.at, frame.RFC3339(until))
		}
	}
}

// heatOf returns a map with the UTC hour as the count of each hour, and no counts on some weekdays.
func heatOf(scale calendarScale, at string, in *time.Location) *heatMap {
	day, _ := time.Parse("2006-01-02", at)
	from, until := scale.Window(day, in)
	counts := map[int64]int64{}
	for h := from.UTC().Truncate(time.Hour); h.Before(until); h = h.Add(time.Hour) {
		if h.Weekday()%2 == 0 {
			counts[h.Unix()] = int64(h.Hour()*h.Day()) * 37
		}
	}
	m := newHeatMap(from, until, in, counts, 0)
	m.ID, m.Title, m.Now = "heat", "Scheduled messages", day.Add(36*time.Hour)
	return m
}

// TestHeatMap_Days: every hour of UTC of the window stands in one cell, on days of 23, 24 and 25 hours, and of zones whose hours are
// no whole ones.
func TestHeatMap_Days(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		zone, day string
		hours     int
		odd       string
	}{
		{"Europe/Berlin", "2026-10-25", 25, "25 h"}, {"Europe/Berlin", "2026-03-29", 23, "23 h"}, {"Europe/Berlin", "2026-10-24", 24, ""},
		{"America/New_York", "2026-11-01", 25, "25 h"}, {"Asia/Kolkata", "2026-10-25", 24, ""}, {"America/Santiago", "2026-09-06", 23, "23 h"},
		{"Australia/Lord_Howe", "2026-10-04", 23, "23½ h"}, {"Australia/Lord_Howe", "2026-04-05", 25, "24½ h"}, {"UTC", "2026-10-25", 24, ""},
	} {
		in := frame.LoadZone(row.zone)
		m := heatOf(calendarMonth, row.day, in)
		seen, last := 0, time.Time{}
		for _, d := range m.Days {
			inColumns := 0
			for _, cells := range d.Columns() {
				inColumns += len(cells)
			}
			if inColumns != len(d.Hours) {
				t.Errorf("%s %s: %d of %d hours stand in a column", row.zone, d.Date, inColumns, len(d.Hours))
			}
			for _, h := range d.Hours {
				if !last.IsZero() && h.From.Sub(last) != time.Hour {
					t.Errorf("%s: %s follows %s", row.zone, h.From, last)
				}
				last = h.From
				seen++
			}
			if d.Date.Format("2006-01-02") == row.day && (len(d.Hours) != row.hours || d.Odd() != row.odd) {
				t.Errorf("%s %s has %d hours, %q", row.zone, row.day, len(d.Hours), d.Odd())
			}
		}
		if m.HalfHours() != (row.zone == "Asia/Kolkata" || row.zone == "Australia/Lord_Howe") {
			t.Errorf("%s: half hours %v", row.zone, m.HalfHours())
		}
	}
}

// TestHeatMap_SVG holds the drawings to what they were.
func TestHeatMap_SVG(t *testing.T) {
	t.Parallel()
	golden.Compare(t, "calendar/month.svg", string(heatOf(calendarMonth, "2026-11-24", time.UTC).SVG()))
	back := heatOf(calendarWeek, "2026-10-25", frame.LoadZone("Europe/Berlin"))
	back.markOver(map[int64]bool{back.Days[6].Hours[4].From.Unix(): true})
	golden.Compare(t, "calendar/week-clocks-back.svg", string(back.SVG()))
	golden.Compare(t, "calendar/week-clocks-forward.svg", string(heatOf(calendarWeek, "2026-03-29", frame.LoadZone("Europe/Berlin")).SVG()))
	golden.Compare(t, "calendar/week-half-hours.svg", string(heatOf(calendarWeek, "2026-11-24", frame.LoadZone("Asia/Kolkata")).SVG()))
}

// TestHeatStep: the largest number has the hottest level, and steps are round.
func TestHeatStep(t *testing.T) {
	t.Parallel()
	for largest, want := range map[int64]int64{0: 1, 1: 1, 5: 1, 6: 2, 10: 2, 11: 3, 26: 6, 31: 8, 41: 10, 100: 20, 101: 30, 1400: 300, 1_000_000: 200_000} {
		if got := heatStep(largest); got != want {
			t.Errorf("the step of %d is %d, want %d", largest, got, want)
		}
	}
	m := &heatMap{Step: 20, Max: 90}
	for n, want := range map[int64]int64{0: 0, 1: 1, 20: 1, 21: 2, 90: 5, 1000: 5} {
		if got := m.Level(n); got != want {
			t.Errorf("the level of %d is %d, want %d", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1k", 1250: "1.2k", 9999: "9.9k", 12_345: "12k", 1_000_000: "1M", 2_540_000: "2.5M", 12_000_000: "12M"} {
		if got := shortNumber(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// TestPlanned returns the sending period of each kind of campaign.
func TestPlanned(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name        string
		campaign    client.Campaign
		from, until time.Time
		zones       bool
	}{
		{"send time", client.Campaign{SendAt: at, Spread: "1h30m"}, at, at.Add(90 * time.Minute), false},
		{"zone", client.Campaign{LocalTime: "2026-11-24T10:00:00", TimeZone: "Europe/Berlin", Spread: "0s"}, at, at, false},
		{"everybody's zone", client.Campaign{LocalTime: "2026-11-24T10:00:00", Spread: "1h"}, at.Add(-13 * time.Hour), at.Add(14 * time.Hour), true},
		{"started without a time", client.Campaign{StartedAt: at, Spread: "1m"}, at, at.Add(time.Minute), false},
		{"when it starts", client.Campaign{Spread: "1m"}, time.Time{}, time.Time{}, false},
	} {
		if p := planned(row.campaign); !p.From.Equal(row.from) || !p.Until.Equal(row.until) || p.Zones != row.zones {
			t.Errorf("%s: from %s until %s, %v", row.name, p.From, p.Until, p.Zones)
		}
	}
}

// TestBars_SVG draws drafts as links that can be dragged, and the reason on other campaigns.
func TestBars_SVG(t *testing.T) {
	t.Parallel()
	from, until := calendarMonth.Window(time.Date(2026, 10, 24, 0, 0, 0, 0, time.UTC), frame.LoadZone("Europe/Berlin"))
	one := func(name string, status client.CampaignStatus, phase client.CampaignPhase, day, hours int) plannedCampaign {
		p := planned(client.Campaign{Name: name, Status: status, Phase: phase, SendAt: time.Date(2026, 10, day, 9, 0, 0, 0, time.UTC), Spread: (time.Duration(hours) * time.Hour).String()})
		p.Fixed, p.Move = fixed(p.Campaign, true), "/console/calendar/campaigns/"+name+"?a=1&b=2"
		return p
	}
	zones := planned(client.Campaign{Name: "Everywhere", Status: client.CampaignStatusDraft, Phase: client.CampaignPhaseDraft, LocalTime: "2026-10-27T09:00:00", Spread: "30m"})
	zones.Move = "/console/calendar/campaigns/everywhere"
	drawn := bars{
		axis.Axis{From: from, Until: until, Zone: frame.LoadZone("Europe/Berlin"), Scale: axis.ScaleMonth, Now: time.Date(2026, 10, 12, 0, 0, 0, 0, time.UTC), Title: "Campaigns"},
		[]plannedCampaign{one("Autumn <sale>", client.CampaignStatusFinished, client.CampaignPhaseSentWithProblems, 3, 24), one("A campaign with quite a long name", client.CampaignStatusRunning, client.CampaignPhaseScheduled, 11, 48), one("Winter", client.CampaignStatusDraft, client.CampaignPhaseDraft, 20, 0), zones},
	}
	golden.Compare(t, "calendar/bars.svg", string(drawn.SVG()))
}
