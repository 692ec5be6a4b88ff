package campaign_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/zone"
)

var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// plain is a template without variables.
type plain struct{}

func (plain) Render(map[string]any, func() time.Time) (json.RawMessage, error) {
	return json.RawMessage(`{}`), nil
}

// shown is a template that shows some variables.
type shown []string

func (s shown) Render(variables map[string]any, _ func() time.Time) (json.RawMessage, error) {
	texts := make([]string, len(s))
	for i, name := range s {
		value, known := variables[name]
		if !known {
			return nil, fmt.Errorf("message.title: the variable %s is not known", name)
		}
		texts[i] = fmt.Sprint(value)
	}
	return json.Marshal(map[string]string{"title": strings.Join(texts, ",")})
}

// pushes returns a service without a store, because a plan reads nothing.
func pushes(check func(channel, to string, message json.RawMessage) invalid.FieldErrors) *schedule.Service {
	return schedule.New(nil, nil, nil, nil, nil, schedule.Config{
		Channels: []string{"push", "sms"}, DefaultTTL: time.Hour, MaxHorizon: 30 * 24 * time.Hour, Check: check,
	})
}

// plan plans one line as if its campaign were started at noon.
func plan(c broadcast.Campaign, line broadcast.AudienceLine, of booking.Standing) (booking.Draft, error) {
	return campaign.NewPlanner(pushes(nil), c, plain{}, noon).Plan(line, of, nil)
}

func in(t *testing.T, name string) booking.Standing {
	t.Helper()
	z, err := zone.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return booking.Standing{Terms: quota.Policy(nil), Person: booking.Person{Person: quota.Person{Zone: z}}}
}

// TestPlanner_SendTime: a line's send time is the campaign's send time, in the zone of its recipient, plus the offset
// of the spread.
func TestPlanner_SendTime(t *testing.T) {
	t.Parallel()
	line := broadcast.AudienceLine{Recipient: "anna"}
	behind := campaign.Offset("anna", time.Hour)
	for name, tt := range map[string]struct {
		c    broadcast.Campaign
		zone string
		want time.Time
	}{
		"at once":          {broadcast.Campaign{}, "UTC", noon},
		"later":            {broadcast.Campaign{SendAt: noon.Add(time.Hour)}, "Asia/Tokyo", noon.Add(time.Hour)},
		"a minute past":    {broadcast.Campaign{SendAt: noon.Add(-time.Minute)}, "UTC", noon.Add(-time.Minute)},
		"spread":           {broadcast.Campaign{SendAt: noon.Add(time.Hour), Spread: time.Hour}, "UTC", noon.Add(time.Hour + behind)},
		"at once, spread":  {broadcast.Campaign{Spread: time.Hour}, "UTC", noon.Add(behind)},
		"local":            {broadcast.Campaign{LocalTime: noon}, "America/New_York", noon.Add(5 * time.Hour)},
		"local, spread":    {broadcast.Campaign{LocalTime: noon, Spread: time.Hour}, "America/New_York", noon.Add(5*time.Hour + behind)},
		"local, named":     {broadcast.Campaign{LocalTime: noon, TimeZone: "America/New_York"}, "Asia/Tokyo", noon.Add(5 * time.Hour)},
		"local, past":      {broadcast.Campaign{LocalTime: noon}, "Asia/Tokyo", time.Time{}},
		"local, past less": {broadcast.Campaign{LocalTime: noon.Add(-time.Minute)}, "UTC", noon.Add(-time.Minute)},
	} {
		d, err := plan(tt.c, line, in(t, tt.zone))
		if tt.want.IsZero() {
			if err == nil || err.Error() != "local_time is 2026-11-02T03:00:00Z, and must not be more than a minute in the past; it is now 2026-11-02T12:00:00Z" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || !d.Push.SendAt.Equal(tt.want) || !d.Push.RequestedSendAt.Equal(tt.want) {
			t.Errorf("%s: %s, %v, want %s", name, d.Push.SendAt, err, tt.want)
		}
	}
}

// TestPlanner_Draft: a draft has everything from the campaign and the line.
func TestPlanner_Draft(t *testing.T) {
	t.Parallel()
	c := broadcast.Campaign{
		ID: uuid.New(), Tenant: uuid.New(), Channel: "sms", Category: "news", SendAt: noon.Add(time.Hour), Metadata: json.RawMessage(`{"a":1}`),
		ExpiresAfter: 2 * time.Hour, OnConflict: "defer", Latest: noon.Add(3 * time.Hour),
	}
	line := broadcast.AudienceLine{Recipient: "anna", To: "+4512345678", Variables: json.RawMessage(`{"name":"Anna","city":""}`)}
	p := campaign.NewPlanner(pushes(nil), c, shown{"name", "city", "age", "recipient", "to"}, noon)
	d, err := p.Plan(line, in(t, "UTC"), json.RawMessage(`{"name":"Ann","city":"Bonn","age":7,"recipient":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	got := d.Push
	if got.Campaign != c.ID || got.Tenant != c.Tenant || got.Recipient != "anna" || got.Channel != "sms" || got.Category != "news" || got.To != line.To ||
		string(got.Metadata) != `{"a":1}` || got.TTL != 2*time.Hour || !d.Latest.Equal(c.Latest) || !d.Last.Equal(noon.Add(30*24*time.Hour)) {
		t.Errorf("%+v", d)
	}
	if want := `{"title":"Anna,,7,anna,+4512345678"}`; string(got.Message) != want {
		t.Errorf("%s, want %s", got.Message, want)
	}
	if push.ShardOf(got.ID) != push.Shard(push.RecipientKey(c.Tenant, "anna")) {
		t.Errorf("%s is no id of a recipient's push", got.ID)
	}
	for want, tt := range map[string]struct{ line, stored string }{ // attributes can supply what the line lacks
		`{"title":"stored"}`: {`{"name":"Anna"}`, `{"to":"stored"}`},
		`{"title":""}`:       {`{"to":""}`, `{"to":"stored"}`},
		"message.title: the variable to is not known": {`{}`, `{}`},
	} {
		d, err := campaign.NewPlanner(pushes(nil), c, shown{"to"}, noon).Plan(broadcast.AudienceLine{Recipient: "bo", Variables: json.RawMessage(tt.line)}, in(t, "UTC"), json.RawMessage(tt.stored))
		if err != nil && err.Error() != want || err == nil && string(d.Push.Message) != want {
			t.Errorf("%s, %v, want %s", d.Push.Message, err, want)
		}
	}
	again, err := p.Plan(line, in(t, "UTC"), nil)
	if err == nil {
		t.Errorf("an unknown variable: %+v", again)
	}
	c.OnConflict, c.Latest = "reject", time.Time{}
	if d, err := plan(c, line, in(t, "UTC")); err != nil || !d.Latest.IsZero() || d.Push.ID != got.ID {
		t.Errorf("%+v, %v, want the id %s", d, err, got.ID)
	}
	line.Recipient = "bert"
	if d, _ := plan(c, line, in(t, "UTC")); d.Push.ID == got.ID {
		t.Error("two recipients have the same id")
	}
}

// TestPlanner_Invalid: the faults of a line are reported without its values.
func TestPlanner_Invalid(t *testing.T) {
	t.Parallel()
	check := func(channel, to string, message json.RawMessage) (bad invalid.FieldErrors) {
		if to == "" {
			bad.Add("to", to, "is required by the channel %s", channel)
		}
		if to == "secret" {
			bad.Add("to", to, "must be a number")
		}
		if string(message) != `{}` {
			bad.Add("message", string(message), "must be empty")
		}
		return bad
	}
	var broken brokenTemplate
	for name, tt := range map[string]struct {
		c        broadcast.Campaign
		template campaign.Template
		line     broadcast.AudienceLine
		want     string
	}{
		"a good one":         {broadcast.Campaign{}, plain{}, broadcast.AudienceLine{To: "1"}, ""},
		"without an address": {broadcast.Campaign{}, plain{}, broadcast.AudienceLine{}, ""}, // the decider uses the recipient's address
		"a bad address":      {broadcast.Campaign{}, plain{}, broadcast.AudienceLine{To: "secret"}, "to must be a number"},
		"a bad message": {
			broadcast.Campaign{}, shown{"recipient"}, broadcast.AudienceLine{Recipient: "anna"},
			"to is required by the channel push; message must be empty",
		},
		"a template":    {broadcast.Campaign{}, broken, broadcast.AudienceLine{To: "1"}, "message.body: broken"},
		"columns":       {broadcast.Campaign{}, plain{}, broadcast.AudienceLine{To: "1", Variables: json.RawMessage(`[]`)}, "variables 2: must be an object"},
		"no channel":    {broadcast.Campaign{Channel: "fax"}, plain{}, broadcast.AudienceLine{To: "1"}, "channel unknown channel; the channels are: push, sms"},
		"no zone":       {broadcast.Campaign{LocalTime: noon, TimeZone: "Mars"}, plain{}, broadcast.AudienceLine{To: "1"}, `time_zone there is no time zone "Mars"; give an IANA name, such as Europe/Berlin`},
		"past":          {broadcast.Campaign{SendAt: noon.Add(-time.Hour)}, plain{}, broadcast.AudienceLine{To: "1"}, "send_at must not be more than a minute in the past; it is now 2026-11-02T12:00:00Z"},
		"behind latest": {broadcast.Campaign{OnConflict: "defer", Latest: noon.Add(-time.Second)}, plain{}, broadcast.AudienceLine{To: "1"}, "latest must not be before send_at, 2026-11-02T12:00:00Z"},
		"too far": {
			broadcast.Campaign{SendAt: noon.Add(30*24*time.Hour - time.Second), Spread: 100 * time.Hour}, plain{}, broadcast.AudienceLine{To: "1", Recipient: "anna"},
			"send_at is 2026-12-03T21:20:11Z, and must not be more than 30 days ahead; it is now 2026-11-02T12:00:00Z",
		},
	} {
		_, err := campaign.NewPlanner(pushes(check), tt.c, tt.template, noon).Plan(tt.line, in(t, "UTC"), nil)
		if got := fmt.Sprint(err); tt.want == "" && err != nil || tt.want != "" && got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

type brokenTemplate struct{}

func (brokenTemplate) Render(map[string]any, func() time.Time) (json.RawMessage, error) {
	return nil, errors.New("message.body: broken")
}
