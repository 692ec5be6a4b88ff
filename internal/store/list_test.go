package store_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// TestListFilters over a handful of pushes of which each differs in one thing.
func TestListFilters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, d := range []struct{ id, recipient, channel, category string }{
		{"a", "anna", "log", ""}, {"b", "bert", "log", ""}, {"c", "anna", "sms", ""}, {"d", "anna", "log", "marketing"},
	} {
		at := draft(b.tenant, d.recipient, time.Duration(d.id[0]-'a'+1)*time.Hour)
		at.Push.Channel, at.Push.Category, at.Push.To = d.channel, d.category, d.id
		book(t, b.Store, nil, at)
	}
	ended := draft(b.tenant, "anna", 5*time.Hour)
	ended.Push.To = "e"
	book(t, b.Store, nil, ended)
	if _, err := b.Cancel(t.Context(), b.tenant, ended.Push.ID); err != nil {
		t.Fatal(err)
	}
	book(t, b.Store, nil, draft(uuid.New(), "anna", time.Hour)) // another tenant's

	for want, f := range map[string]store.Filter{
		"a b c d e": {},
		"a c d e":   {Recipient: "anna"},
		"a b d e":   {Channel: "log"},
		"d":         {Category: "marketing"},
		"e":         {Status: push.Canceled},
		"a c d":     {Recipient: "anna", Status: push.Scheduled},
		"a d e":     {Recipient: "anna", Channel: "log"},
		"b c d":     {From: began.Add(2 * time.Hour), Until: began.Add(5 * time.Hour)},
		"c d":       {Recipient: "anna", From: began.Add(2 * time.Hour), Until: began.Add(5 * time.Hour)},
		"":          {Recipient: "nobody"},
	} {
		list, err := b.List(t.Context(), b.tenant, f, store.Position{}, 10)
		var got []string
		for _, p := range list {
			got = append(got, p.To)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%+v: %v, want %s (%v)", f, got, want, err)
		}
	}
}

// TestListPages gives every push once, by send time and id, though many share
// their time.
func TestListPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := store.Order{}
	for range 100 {
		o.Drafts = append(o.Drafts, draft(b.tenant, uuid.NewString(), time.Duration(rand.N(5))*time.Second))
	}
	if _, err := b.Book(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var all []push.Push
	for after := (store.Position{}); ; {
		page, err := b.List(t.Context(), b.tenant, store.Filter{}, after, 7)
		if err != nil || len(page) > 7 {
			t.Fatal(len(page), err)
		}
		if len(page) == 0 {
			break
		}
		all = append(all, page...)
		after = store.Position{SendAt: page[len(page)-1].SendAt, ID: page[len(page)-1].ID}
	}
	if len(all) != 100 || !slices.IsSortedFunc(all, func(a, b push.Push) int {
		if c := a.SendAt.Compare(b.SendAt); c != 0 {
			return c
		}
		return slices.Compare(a.ID[:], b.ID[:])
	}) {
		t.Errorf("%d pushes, or out of order", len(all))
	}
}
