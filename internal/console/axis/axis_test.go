package axis

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/console/golden"
	"github.com/sendquota/sendquota/internal/zone"
)

func berlin(t *testing.T) *time.Location {
	t.Helper()
	in, err := zone.Load("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// TestAxisScale_Window: a window shows its moment, and begins and ends where the clocks say that a day does.
func TestAxisScale_Window(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scale             Scale
		moment            string
		from, until, next string
	}{
		{scaleHour, "2026-11-24T10:27:31+01:00", "2026-11-24T10:10:00+01:00", "2026-11-24T11:10:00+01:00", "2026-11-24T11:10:00+01:00"},
		{scaleHours, "2026-11-24T10:27:31+01:00", "2026-11-24T09:00:00+01:00", "2026-11-24T15:00:00+01:00", "2026-11-24T15:00:00+01:00"},
		{scaleDay, "2026-11-24T10:27:31+01:00", "2026-11-24T00:00:00+01:00", "2026-11-25T00:00:00+01:00", "2026-11-25T00:00:00+01:00"},
		{scaleDay, "2026-10-25T23:00:00+01:00", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00", "2026-10-26T00:00:00+01:00"}, // 25 hours
		{scaleDay, "2026-03-29T12:00:00+02:00", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00", "2026-03-30T00:00:00+02:00"}, // 23 hours
		{ScaleWeek, "2026-10-24T10:00:00+02:00", "2026-10-24T00:00:00+02:00", "2026-10-31T00:00:00+01:00", "2026-10-31T00:00:00+01:00"},
		{ScaleMonth, "2026-11-24T10:27:31+01:00", "2026-11-24T00:00:00+01:00", "2026-12-24T00:00:00+01:00", "2026-12-24T00:00:00+01:00"},
	} {
		moment := at(c.moment)
		from, until := c.scale.Window(moment, berlin(t))
		next, _ := c.scale.Window(c.scale.Shift(moment, 1, berlin(t)), berlin(t))
		if got, want := fmt.Sprint(from.Format(time.RFC3339), until.Format(time.RFC3339), next.Format(time.RFC3339)), fmt.Sprint(c.from, c.until, c.next); got != want {
			t.Errorf("%s of %s: %s, want %s", c.scale, c.moment, got, want)
		}
		if moment.Before(from) || !moment.Before(until) {
			t.Errorf("%s does not show %s", c.scale, c.moment)
		}
		if back, _ := c.scale.Window(c.scale.Shift(next, -1, berlin(t)), berlin(t)); c.scale != scaleHour && c.scale != scaleHours && !back.Equal(from) {
			t.Errorf("%s: one forth and one back leads to %s, from %s", c.scale, back, from)
		}
	}
}

// TestTimeAxis_Ticks puts ticks at round local times, also on days with a clock change.
func TestTimeAxis_Ticks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scale  Scale
		moment string
		want   string
	}{
		{scaleHour, "2026-11-24T10:27:31+01:00", "10:10 10:20 10:30 10:40 10:50 11:00"},
		{scaleHours, "2026-03-29T01:10:00+01:00", "00:00 01:00 03:00 04:00 05:00 06:00"},
		{scaleHours, "2026-10-25T01:10:00+02:00", "00:00 01:00 02:00 +02:00 02:00 +01:00 03:00 04:00"},
		{scaleDay, "2026-10-25T12:00:00+01:00", "00:00 03:00 06:00 09:00 12:00 15:00 18:00 21:00"},
		{ScaleWeek, "2026-10-23T12:00:00+02:00", "Fri 23 Oct Sat 24 Oct Sun 25 Oct Mon 26 Oct Tue 27 Oct Wed 28 Oct Thu 29 Oct"},
	} {
		a := Axis{Scale: c.scale, Zone: berlin(t)}
		a.From, a.Until = c.scale.Window(at(c.moment), a.Zone)
		var labels []string
		for _, tick := range a.ticks() {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.scale, c.moment, got, c.want)
		}
	}
}

// TestTimeAxis_TicksOfOddZones: ticks rise, stay on the axis and are at midnight or a whole step, whatever the clocks do.
func TestTimeAxis_TicksOfOddZones(t *testing.T) {
	t.Parallel()
	step := 17*time.Hour + 13*time.Minute
	if testing.Short() {
		step *= 11
	}
	for _, name := range []string{"Pacific/Apia", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca", "America/Havana"} {
		in, err := zone.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for moment := at("2011-12-25T00:00:00Z"); moment.Before(at("2019-01-01T00:00:00Z")); moment = moment.Add(step) {
			for _, s := range Scales {
				a := Axis{Scale: s.Scale, Zone: in}
				a.From, a.Until = s.Scale.Window(moment, in)
				ticks := a.ticks()
				for i, tick := range ticks {
					if tick.At.Before(a.From) || !tick.At.Before(a.Until) || i > 0 && !ticks[i-1].At.Before(tick.At) {
						t.Fatalf("%s, %s at %s: %v", name, s.Scale, moment, ticks)
					}
				}
				if len(ticks) < 5 || len(ticks) > 32 {
					t.Fatalf("%s, %s at %s: %d ticks", name, s.Scale, moment, len(ticks))
				}
			}
		}
	}
}

// exampleAxis has all that an axis can show.
func exampleAxis(t *testing.T, scale Scale, moment string) Axis {
	t.Helper()
	a := Axis{Scale: scale, Zone: berlin(t), Title: "user-42 & co, <1 day>"}
	a.From, a.Until = scale.Window(at(moment), a.Zone)
	length := a.Until.Sub(a.From)
	part := func(n int) time.Time { return a.From.Add(length * time.Duration(n) / 100) }
	a.Now, a.Cursor = part(30), part(64)
	push := func(n int, status, id string) Mark { return Mark{part(n), id, status, status + ` "marketing"`} }
	a.Lanes = []Lane{
		{Name: "Pushes", Kind: "pushes", Marks: []Mark{push(5, "sent", ""), push(10, "failed", ""), push(15, "canceled", ""), push(20, "expired", ""), push(30, "sending", ""),
			push(50, "scheduled", "p1"), push(80, "scheduled", "p2"), push(80, "scheduled", "p3"), push(120, "scheduled", "off")}},
		{Name: "Attempts", Kind: "sends", Marks: []Mark{push(5, "delivered", ""), push(10, "refused", ""), push(11, "unknown", "")}},
		{Name: "a-rule-with-a-very-long-name", Kind: "rule", Spans: []Span{{part(40), part(60)}, {part(60), part(61)}, {part(75), part(85)}}},
		{Name: "never", Kind: "rule", Spans: []Span{{}}},
		{Name: "night", Kind: "quiet", Spans: []Span{{part(90), part(130)}, {part(-10), part(2)}}},
		{Name: "Free", Kind: "free", Spans: []Span{{part(30), part(40)}, {part(61), part(61).Add(time.Second)}, {part(85), part(90)}}},
	}
	return a
}

// TestTimeAxis_SVG holds the pictures to files. Each is well-formed and has no style or script of its own.
func TestTimeAxis_SVG(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		scale  Scale
		moment string
	}{
		{"hour", scaleHour, "2026-11-24T10:27:31+01:00"},
		{"6h-clocks-back", scaleHours, "2026-10-25T01:10:00+02:00"},
		{"6h-clocks-forward", scaleHours, "2026-03-29T01:10:00+01:00"},
		{"day", scaleDay, "2026-11-24T10:27:31+01:00"},
		{"day-25-hours", scaleDay, "2026-10-25T12:00:00+01:00"},
		{"week", ScaleWeek, "2026-10-23T12:00:00+02:00"},
		{"month", ScaleMonth, "2026-11-24T10:27:31+01:00"},
	} {
		svg := string(exampleAxis(t, c.scale, c.moment).SVG())
		golden.Compare(t, "timeaxis/"+c.name+".svg", svg)
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			e, _ := token.(xml.StartElement)
			for _, attribute := range e.Attr {
				if name := attribute.Name.Local; name == "style" || strings.HasPrefix(name, "on") || e.Name.Local == "script" {
					t.Errorf("%s: <%s %s>", c.name, e.Name.Local, name)
				}
			}
		}
	}
}
