package campaign_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/policy/policytest"
	"github.com/sendquota/sendquota/internal/push"
)

// picky is a template that cannot be rendered for one recipient.
type picky struct{}

func (picky) Render(variables map[string]any, _ func() time.Time) (json.RawMessage, error) {
	if variables["recipient"] == "user-3" {
		return nil, errors.New("message.title: is not for user-3")
	}
	return json.RawMessage(`{}`), nil
}

// random is a random draft of a tenant with random rules, and its surroundings.
type random struct {
	*bundle
	draft  broadcast.Campaign
	terms  booking.Terms
	people map[string]booking.Person
	held   map[string][]push.Push
	others map[uuid.UUID]string // names of campaigns that were started before
	own    push.OwnCaps
}

func newRandom(t *rapid.T, b *bundle) *random {
	w := policytest.Ahead(time.Now()).Draw(t, "world")
	document := w.Documents(rapid.IntRange(0, 1).Draw(t, "least limit")).Draw(t, "document")
	terms, err := document.Compile(policytest.Channels)
	if err != nil {
		t.Skip("always quiet")
	}
	x := &random{bundle: b, terms: terms, people: map[string]booking.Person{}, held: map[string][]push.Push{}, others: map[uuid.UUID]string{}}
	tenant := b.newTenant(t)
	for _, name := range []string{"first", "second"} {
		other := b.drafted(t, broadcast.Campaign{Tenant: tenant, Name: name})
		b.exec(t, `UPDATE campaigns SET status = 'running', started_at = clock_timestamp() WHERE id = $1`, [16]byte(other.ID))
		x.others[other.ID] = name
	}
	var audience []broadcast.AudienceLine
	begin := w.Moments().Draw(t, "begin")
	for i := range rapid.IntRange(1, 12).Draw(t, "recipients") {
		who := fmt.Sprint("user-", i)
		audience = append(audience, broadcast.AudienceLine{Recipient: who})
		x.books(t, tenant, who, begin)
	}
	x.holds(t, slices.Concat(slices.Collect(maps.Values(x.held))...)...)
	for _, line := range audience {
		x.person(t, w, line.Recipient)
	}
	if len(x.people) > 0 {
		x.describes(t, tenant, x.people)
	}
	b.has(t, tenant, document)
	some := func(n, most int, what string) *int {
		if rapid.IntRange(0, n).Draw(t, "has a cap") > 0 {
			return nil
		}
		return new(rapid.IntRange(1, most).Draw(t, what))
	}
	x.own = push.OwnCaps{PendingPushes: some(3, 30, "pending pushes"), RecipientsPerDay: some(3, 6, "recipients per day")}
	kind := policytest.Kinds().Draw(t, "kind")
	c := broadcast.Campaign{
		Tenant: tenant, Name: "sale", Channel: kind.Channel, Category: kind.Category, OnConflict: rapid.SampledFrom([]string{"reject", "defer", "defer"}).Draw(t, "on conflict"),
		Spread: time.Duration(rapid.SampledFrom([]int{0, 60, 7200, 86400}).Draw(t, "spread")) * time.Second,
	}
	if rapid.IntRange(0, 2).Draw(t, "local") == 0 {
		c.LocalTime = begin.Truncate(time.Second)
	} else {
		c.SendAt = begin.Truncate(time.Second)
	}
	if c.OnConflict == "defer" && rapid.Bool().Draw(t, "until") {
		c.Latest = begin.Add(c.Spread + time.Duration(rapid.IntRange(0, 48).Draw(t, "latest"))*time.Hour).Truncate(time.Second)
	}
	x.draft = b.drafted(t, c, audience...)
	return x
}

// person describes a recipient, or not.
func (x *random) person(t *rapid.T, w policytest.World, who string) {
	if rapid.Bool().Draw(t, "unknown") {
		return
	}
	p := booking.Person{Person: w.People().Draw(t, "person")}
	switch rapid.IntRange(0, 6).Draw(t, "opts out") {
	case 0:
		p.OptOuts.All = true
	case 1:
		p.OptOuts.Categories = []string{rapid.SampledFrom(policytest.Categories).Draw(t, "of")}
	}
	x.people[who] = p
}

// books draws a recipient's bookings around a time, some from other campaigns.
func (x *random) books(t *rapid.T, tenant uuid.UUID, who string, around time.Time) {
	for range rapid.IntRange(0, 5).Draw(t, "held") {
		kind := policytest.Kinds().Draw(t, "kind of booking")
		p := push.Push{
			Content: push.Content{Recipient: who, Channel: kind.Channel, Category: kind.Category},
			Tenant:  tenant, SendAt: around.Add(time.Duration(rapid.IntRange(-3000, 3000).Draw(t, "minutes")) * time.Minute).Truncate(time.Second),
		}
		if rapid.Bool().Draw(t, "of a campaign") {
			p.Campaign = rapid.SampledFrom(slices.SortedFunc(maps.Keys(x.others), func(a, b uuid.UUID) int { return cmp.Compare(x.others[a], x.others[b]) })).Draw(t, "which")
		}
		p.ID = push.NewID(p.SendAt, push.RecipientKey(tenant, who))
		x.held[who] = append(x.held[who], p)
	}
}
