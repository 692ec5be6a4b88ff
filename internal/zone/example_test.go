package zone_test

import (
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/zone"
)

func load(name string) *time.Location {
	loaded, err := zone.Load(name)
	if err != nil {
		panic(err)
	}
	return loaded
}

// A time that is left out in spring is the first instant after the gap; one that comes twice in autumn is the first of
// the two. In Apia a whole day was left out.
func ExampleInstant() {
	for _, row := range [][2]string{
		{"Asia/Tokyo", "2026-12-01T09:00"},
		{"Europe/Berlin", "2026-03-29T02:30"},
		{"Europe/Berlin", "2026-10-25T02:30"},
		{"Australia/Lord_Howe", "2026-10-04T02:15"},
		{"Australia/Lord_Howe", "2026-04-05T01:45"},
		{"Asia/Kathmandu", "2026-12-01T09:00"},
		{"Pacific/Apia", "2011-12-30T09:00"},
	} {
		local, err := zone.ParseLocal(row[1])
		if err != nil {
			panic(err)
		}
		at := zone.Instant(local, load(row[0]))
		fmt.Printf("%-20s %s is %s, %s\n", row[0], row[1], at.UTC().Format("2006-01-02 15:04Z"), at.Format("15:04 -07:00"))
	}
	// Output:
	// Asia/Tokyo           2026-12-01T09:00 is 2026-12-01 00:00Z, 09:00 +09:00
	// Europe/Berlin        2026-03-29T02:30 is 2026-03-29 01:00Z, 03:00 +02:00
	// Europe/Berlin        2026-10-25T02:30 is 2026-10-25 00:30Z, 02:30 +02:00
	// Australia/Lord_Howe  2026-10-04T02:15 is 2026-10-03 15:30Z, 02:30 +11:00
	// Australia/Lord_Howe  2026-04-05T01:45 is 2026-04-04 14:45Z, 01:45 +11:00
	// Asia/Kathmandu       2026-12-01T09:00 is 2026-12-01 03:15Z, 09:00 +05:45
	// Pacific/Apia         2011-12-30T09:00 is 2011-12-30 10:00Z, 00:00 +14:00
}

// Days and hours are as long as the clocks make them.
func ExampleCalendar_Around() {
	show := func(name string, unit zone.Unit, at string) {
		t, err := time.Parse(time.RFC3339, at)
		if err != nil {
			panic(err)
		}
		from, until, _ := zone.Calendar{Zone: load(name), Unit: unit}.Around(t)
		const layout = "Jan 2 15:04 -07:00"
		fmt.Printf("%-20s %s to %s: %s\n", name, from.Format(layout), until.Format(layout), until.Sub(from))
	}
	show("Europe/Berlin", zone.Day, "2026-03-29T12:00:00Z")
	show("Europe/Berlin", zone.Day, "2026-10-25T12:00:00Z")
	show("Europe/Berlin", zone.Hour, "2026-10-25T00:30:00Z")
	show("Europe/Berlin", zone.Hour, "2026-10-25T01:30:00Z")
	show("Australia/Lord_Howe", zone.Day, "2026-10-04T12:00:00+11:00")
	show("Australia/Lord_Howe", zone.Hour, "2026-04-05T01:45:00+10:30")
	show("Pacific/Apia", zone.Day, "2011-12-30T09:59:59Z")
	show("Pacific/Apia", zone.Day, "2011-12-30T10:00:00Z")
	show("Pacific/Apia", zone.Week, "2011-12-28T00:00:00Z")
	// Output:
	// Europe/Berlin        Mar 29 00:00 +01:00 to Mar 30 00:00 +02:00: 23h0m0s
	// Europe/Berlin        Oct 25 00:00 +02:00 to Oct 26 00:00 +01:00: 25h0m0s
	// Europe/Berlin        Oct 25 02:00 +02:00 to Oct 25 02:00 +01:00: 1h0m0s
	// Europe/Berlin        Oct 25 02:00 +01:00 to Oct 25 03:00 +01:00: 1h0m0s
	// Australia/Lord_Howe  Oct 4 00:00 +10:30 to Oct 5 00:00 +11:00: 23h30m0s
	// Australia/Lord_Howe  Apr 5 01:30 +10:30 to Apr 5 02:00 +10:30: 30m0s
	// Pacific/Apia         Dec 29 00:00 -10:00 to Dec 31 00:00 +14:00: 24h0m0s
	// Pacific/Apia         Dec 31 00:00 +14:00 to Jan 1 00:00 +14:00: 24h0m0s
	// Pacific/Apia         Dec 25 00:00 -10:00 to Jan 1 00:00 +14:00: 144h0m0s
}
