package console

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/zone"
)

const (
	zoneParam  = "tz"           // of the URL: mine, recipient or utc
	zoneCookie = "sendquota_tz" // in which a script writes the zone of the browser
	zoneField  = "zone"         // of a form: the zone that its times were typed in
)

// zones are the time zones that a page may show its times in.
type zones struct {
	Chosen    string // mine, recipient or utc; empty: mine
	Mine      *time.Location
	Recipient *time.Location // nil: the page is about no recipient, or its zone is not known
}

// readZones takes the choice from the URL, and the browser's zone from the cookie that a script sets; without one it is UTC.
func readZones(r *http.Request) zones {
	z := zones{Chosen: r.URL.Query().Get(zoneParam), Mine: time.UTC}
	if z.Chosen != "recipient" && z.Chosen != "utc" && z.Chosen != "mine" {
		z.Chosen = ""
	}
	if cookie, err := r.Cookie(zoneCookie); err == nil {
		if mine, err := zone.Load(cookie.Value); err == nil {
			z.Mine = mine
		}
	}
	return z
}

// Shown is the zone that was chosen.
func (z zones) Shown() *time.Location {
	switch {
	case z.Chosen == "utc":
		return time.UTC
	case z.Chosen == "recipient" && z.Recipient != nil:
		return z.Recipient
	}
	return z.Mine
}

// zoneOf has the page know the zone of a recipient: its own, or else the default of the policy. That it is not known is an error
// only if times are to be shown in it.
func (p *page) zoneOf(recipient string) error {
	if recipient == "" || p.Zones.Recipient != nil || !p.May(push.ScopeRecipientsRead) {
		return nil
	}
	name, err := p.readZoneOf(recipient)
	switch {
	case err == nil:
		p.useZone(name)
	case p.Zones.Chosen == "recipient":
		return err
	}
	return nil
}

// readZoneOf reads the name of the zone of a recipient; empty: the user may not see it.
func (p *page) readZoneOf(recipient string) (string, error) {
	known, err := p.known(recipient)
	switch {
	case err != nil:
		return "", err
	case known != nil && known.TimeZone != "":
		return known.TimeZone, nil
	case !p.May(push.ScopePolicyRead):
		return "", nil
	}
	policy, err := p.api.Policy.Get(p.ctx())
	return cmp.Or(policy.DefaultZone, "UTC"), err
}

// known reads what the tenant has described of a recipient; nil: nothing.
func (p *page) known(recipient string) (*client.Recipient, error) {
	found, err := p.api.Recipients.Get(p.ctx(), recipient)
	var problem *client.Problem
	switch {
	case err == nil:
		return &found, nil
	case errors.As(err, &problem) && problem.Status == http.StatusNotFound:
		return nil, nil
	}
	return nil, err
}

// zoneOfForm is zoneOf before a time of a form is read, which nobody sees.
func (p *page) zoneOfForm(recipient string) error {
	if p.Zones.Chosen != "recipient" {
		return nil
	}
	return p.zoneOf(recipient)
}

// useZone has the page know the zone of its recipient by its name.
func (p *page) useZone(name string) {
	if in := loadZone(name); in != nil {
		p.Zones.Recipient = in
	}
}

// choice is one way to show times.
type choice struct {
	Value, Name string
	Current     bool
}

// Choices are those of this page.
func (z zones) Choices() []choice {
	all := []choice{{"mine", "Mine: " + z.Mine.String(), z.Shown() == z.Mine && z.Chosen != "utc" && (z.Chosen != "recipient" || z.Recipient == nil)}}
	if z.Recipient != nil {
		all = append(all, choice{"recipient", "Recipient’s: " + z.Recipient.String(), z.Chosen == "recipient"})
	}
	return append(all, choice{"utc", "UTC", z.Chosen == "utc"})
}

// Now is the moment that distances are counted from.
func (p *page) Now() time.Time { return p.c.cfg.Now() }

// written is a moment as people read it: by the clocks of a zone, with the name of the zone, and how far it is from now.
func written(t time.Time, in *time.Location, now time.Time) (clocks, named, away string) {
	shown := t.In(in)
	clocks = shown.Format("2006-01-02 15:04:05")
	if t.Nanosecond() != 0 {
		clocks = shown.Format("2006-01-02 15:04:05.000")
	}
	return clocks, zoneName(shown), distance(t.Sub(now))
}

// Time shows a moment in the chosen zone, with the name of the zone and how far it is away. A zero time is a dash.
func (p *page) Time(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	clocks, named, away := written(t, p.Zones.Shown(), p.Now())
	return timeElement(t, clocks, named, away)
}

// timeElement marks up a moment as it is written.
func timeElement(t time.Time, clocks, named, away string) template.HTML {
	return template.HTML(fmt.Sprintf(`<time datetime="%s">%s <span class="zone">%s</span> <span class="distance">%s</span></time>`,
		t.UTC().Format(time.RFC3339Nano), clocks, template.HTMLEscapeString(named), away))
}

// plainTime is a moment as Time shows it, without marks.
func (p *page) plainTime(t time.Time) string { return plainTime(t, p.Zones.Shown(), p.Now()) }

func plainTime(t time.Time, in *time.Location, now time.Time) string {
	clocks, named, away := written(t, in, now)
	return clocks + " " + named + ", " + away
}

// Machine is a moment as programs write it, for hidden fields and addresses.
func (p *page) Machine(t time.Time) string { return rfc3339(t) }

// loadZone is a zone by its name; nil: it is not known.
func loadZone(name string) *time.Location {
	if name == "" {
		return nil
	}
	at, err := zone.Load(name)
	if err != nil {
		return nil
	}
	return at
}

// zoneName is the name of a time's zone, with its offset where the name does not say it.
func zoneName(t time.Time) string {
	if t.Location() == time.UTC {
		return "UTC"
	}
	return t.Location().String() + " (" + t.Format("-07:00") + ")"
}

// distance says how far a moment is away, in one unit.
func distance(d time.Duration) string {
	text := span(d.Abs())
	switch {
	case d.Abs() < time.Second:
		return "now"
	case d < 0:
		return text + " ago"
	}
	return "in " + text
}

// span is a duration in its largest unit, or two where one is coarse.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 24*time.Hour:
		return two(d, time.Hour, "h", time.Minute, "min")
	}
	return two(d, 24*time.Hour, "d", time.Hour, "h")
}

func two(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d %s", d/large, largeName)
	if rest := d % large / small; rest > 0 && d < 10*large {
		text += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return text
}

// typedIn is the zone of the times among the values of a form: the one that the form named when it was drawn. Without one, as in a link,
// it is the zone that the page shows.
func (p *page) typedIn(values url.Values) *time.Location {
	if in := loadZone(values.Get(zoneField)); in != nil {
		return in
	}
	return p.Zones.Shown()
}

// sentZone is the zone of the times of the form that was sent: of what [page.Value] returns.
func (p *page) sentZone() *time.Location {
	if p.r.PostForm != nil {
		return p.typedIn(p.r.PostForm)
	}
	return p.typedIn(p.r.URL.Query())
}

// FieldZone is the zone of the times in the fields of this page: the one that it shows, but that in which they were typed where they
// stand there as they were typed.
func (p *page) FieldZone() *time.Location {
	if p.r.PostForm != nil || p.Form {
		return p.sentZone()
	}
	for _, name := range []string{"at", "from", "until"} {
		at, err := p.readLocal(p.Value(name))
		if err == nil && !exactTime(p.Value(name)) && !p.fits(at, p.Zones.Shown()) {
			return p.sentZone()
		}
	}
	return p.Zones.Shown()
}

// fits reports whether a field, which shows whole seconds, can show a time in a zone: what its clocks show twice is read as one of both.
func (p *page) fits(at time.Time, in *time.Location) bool {
	again, err := p.readTime(localIn(at, in), in)
	return err == nil && again.Equal(at.Truncate(time.Second))
}

// exactTime reports whether a time is written with its offset: no zone is needed to read it.
func exactTime(written string) bool {
	_, err := time.Parse(time.RFC3339Nano, written)
	return err == nil
}

// TimeValue is what a field for a time of a filter was filled with, by the clocks of FieldZone.
func (p *page) TimeValue(name string) string {
	written, in := p.Value(name), p.FieldZone()
	at, err := p.readLocal(written)
	if err != nil || !p.fits(at, in) || !exactTime(written) && in.String() == p.sentZone().String() {
		return written
	}
	return localIn(at, in)
}

// localLayouts are how browsers write the value of a datetime-local field.
var localLayouts = []string{"2006-01-02T15:04:05.999999999", "2006-01-02T15:04"}

// readLocal reads a time of the form that was sent.
func (p *page) readLocal(value string) (time.Time, error) { return p.readTime(value, p.sentZone()) }

// readTime reads the value of a datetime-local field in a zone. A time that a clock change leaves out is an error.
func (p *page) readTime(value string, in *time.Location) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, value); err == nil {
		return t, nil
	}
	for _, layout := range localLayouts {
		t, err := time.ParseInLocation(layout, value, in)
		if err != nil {
			continue
		}
		if t.Format(layout) != value && t.Format("2006-01-02T15:04:05") != value {
			return t, fmt.Errorf("%s does not exist in %s: the clocks are set forward then", value, in)
		}
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%q is no time: write it as 2006-01-02T15:04", value)
}

// Local is a moment as the value of a datetime-local field of this page.
func (p *page) Local(t time.Time) string { return localIn(t, p.FieldZone()) }

func localIn(t time.Time, in *time.Location) string {
	if t.IsZero() {
		return ""
	}
	return t.In(in).Format("2006-01-02T15:04:05")
}
