package console

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestWhy_Campaign has a sentence for each outcome in a campaign. A refusal names the sends in the way.
func TestWhy_Campaign(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	at := time.Now().Add(time.Hour).Truncate(time.Second)
	if _, err := b.api.Recipients.Put(t.Context(), "out", client.NewRecipient{OptOuts: &client.NewOptOuts{All: true}}); err != nil {
		t.Fatal(err)
	}
	first := b.startCampaign("Spring news", at, "recipient\nanna\n")
	sale := b.startCampaign("Sale", at.Add(30*time.Second), "recipient,to\nanna,+4512345678\nbert,\nout,\n")
	ask := func(who, campaign string) reply {
		return b.get("/console/why?" + url.Values{"recipient": {who}, "campaign": {campaign}, "tz": {"utc"}}.Encode())
	}
	ask("nobody", sale.ID).has(t, 200, "nobody is not in the audience of “Sale”")
	ask("bert", sale.ID).has(t, 200, "bert has not been sent a message of “Sale” yet: its send time")
	ask("out", sale.ID).has(t, 200, "out did not get “Sale” because they had opted out. They have opted out of everything: they cannot get such a message.").lacks(t, "Send at next free time", "/console/why/book")
	page := ask("anna", sale.ID)
	page.has(t, 200, "anna did not get “Sale” because the rule per-minute was full.", "1 in any 1 min", "Spring news", "/console/campaigns/"+first.ID, "Send “Sale” to anna then", "As API call")
	next := regexp.MustCompile(`name="send_at" value="([^"]+)"`).FindStringSubmatch(page.Body)
	if next == nil || next[1] != at.Add(time.Minute).UTC().Format(time.RFC3339) {
		t.Errorf("the next free time is %v", next)
	}
	fields := []string{"recipient", "anna", "campaign", sale.ID, "send_at", next[1], "once", "one"}
	booked := b.post("/console/why/book", fields...)
	b.follow(booked).has(t, 200, "Scheduled for anna, for "+at.Add(time.Minute).UTC().Format("2006-01-02 15:04:05")+" UTC, in 1 h", "Message for anna", "+4512345678")
	if again := b.post("/console/why/book", fields...); again.Header.Get("Location") != booked.Header.Get("Location") {
		t.Errorf("the form booked twice: %s, %s", booked.Header, again.Header)
	}
}

// TestWhy_Time: without a campaign the answer is about what is nearest to the time.
func TestWhy_Time(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.submit("anna", time.Hour)
	if _, err := b.api.Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "anna", Message: client.Message{"title": "x"}, SendAt: one.SendAt.Add(20 * time.Second)}); err == nil {
		t.Fatal("the second push of a minute is accepted")
	}
	b.refusalStored(t, "anna")
	ask := func(who string, at time.Time) reply {
		return b.get("/console/why?" + url.Values{"recipient": {who}, "at": {at.UTC().Format("2006-01-02T15:04:05")}, "tz": {"utc"}}.Encode())
	}
	ask("anna", one.SendAt.Add(25*time.Second)).has(t, 200, "because the rule per-minute was full", "/console/pushes/"+one.ID, "Send a message then")
	ask("anna", one.SendAt).has(t, 200, "its send time is in the future")
	ask("nobody", one.SendAt).has(t, 200, "No recipient found for nobody: no recipient has this id or address").lacks(t, "time axis", "Send at next free time")
	b.submit("later", 5*time.Hour)
	b.get("/console/why?recipient=later").has(t, 200, "within an hour of now", "Enter the planned time")
	ask("anna", one.SendAt.Add(5*time.Hour)).has(t, 200, "No message to anna was scheduled or refused within an hour", "A message without a category is allowed then")
	ask("anna", time.Now().Add(-5*time.Hour)).has(t, 200, "No message to anna was scheduled or refused within an hour")
	in, err := time.LoadLocation("Asia/Tokyo")
	if err == nil {
		_, err = b.api.Recipients.Put(t.Context(), "anna", client.NewRecipient{TimeZone: "Asia/Tokyo"})
	}
	if err != nil {
		t.Fatal(err)
	}
	b.get("/console/why?recipient=anna&tz=recipient&at="+one.SendAt.In(in).Format("2006-01-02T15:04:05")).has(t, 200, "its send time is in the future", "Time zone: Asia/Tokyo", one.SendAt.In(in).Format("2006-01-02 15:04:05"))
	ask("bert", one.SendAt).has(t, 200, "Recipient’s: UTC") // that of the policy
	ask("", one.SendAt).has(t, 422, "enter a customer id")
	b.get("/console/why?recipient=&at=yesterday").has(t, 422, "enter a customer id", `"yesterday" is not a time`)
	b.get("/console/why?recipient=anna&campaign=nonsense").has(t, 422)
	if page := b.get("/console/why"); page.Status != 200 || strings.Contains(page.Body, "Answer") {
		t.Errorf("%d: an answer without a question", page.Status)
	}
}

// TestWhy_Rules lists each send in the way once if two rules together refused a push, also after its time.
func TestWhy_Rules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []string
	for _, in := range []time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute} {
		ids = append(ids, b.submit("anna", in).ID)
	}
	at := time.Now()
	if _, err := b.api.Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "anna", Message: client.Message{"title": "x"}}); err == nil {
		t.Fatal("the sixth push of an hour is accepted")
	}
	b.refusalStored(t, "anna")
	page := b.get("/console/why?" + url.Values{"recipient": {"anna"}, "at": {at.UTC().Format("2006-01-02T15:04:05")}, "tz": {"utc"}}.Encode())
	page.has(t, 200, "because the rules per-minute and per-hour were full", "<h2>per-minute and per-hour</h2>")
	for _, id := range ids {
		if n := strings.Count(page.Body, `href="/console/pushes/`+id); n != 1 {
			t.Errorf("a send in the way is listed %d times", n)
		}
	}
}

// TestWhy_OptedOut: nothing is offered to a person who has opted out, whatever is asked; the answer names what they have opted out of.
func TestWhy_OptedOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.submit("anna", time.Hour)
	if _, err := b.api.Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "anna", Category: "news", Message: client.Message{"title": "x"}, SendAt: one.SendAt}); err == nil {
		t.Fatal("the second push of a minute is accepted")
	}
	b.refusalStored(t, "anna")
	ask := func(at time.Time) reply {
		return b.get("/console/why?" + url.Values{"recipient": {"anna"}, "at": {at.UTC().Format("2006-01-02T15:04:05")}, "tz": {"utc"}}.Encode())
	}
	ask(one.SendAt).has(t, 200, "Send a message then")
	put := func(o client.NewOptOuts) {
		t.Helper()
		if _, err := b.api.Recipients.Put(t.Context(), "anna", client.NewRecipient{OptOuts: &o}); err != nil {
			t.Fatal(err)
		}
	}
	put(client.NewOptOuts{Categories: []string{"news"}})
	ask(one.SendAt).has(t, 200, "They have opted out of the category news: they cannot get such a message").lacks(t, "Send at next free time", "Send a message then")
	put(client.NewOptOuts{All: true})
	ask(one.SendAt.Add(5*time.Hour)).has(t, 200, "They have opted out of everything").lacks(t, "Send at next free time", "No message is allowed", "without a category is allowed")
	b.get("/console/pushes/"+one.ID).has(t, 200, "opted-out")
	b.get("/console/why?tz=utc&recipient=anna&at="+one.SendAt.UTC().Format("2006-01-02T15:04:05")).lacks(t, "Send at next free time")
}

// TestWhy_Address: a person is found by an address as well, in any case; of several people one is chosen.
func TestWhy_Address(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for id, address := range map[string]string{"C-1": "+4512345678", "C-2": "+4587654321", "C-3": "+4587654321"} {
		if _, err := b.api.Recipients.Put(t.Context(), id, client.NewRecipient{Addresses: map[string]string{"sms": address, "push": "Token-" + id}}); err != nil {
			t.Fatal(err)
		}
	}
	one := b.submit("C-1", time.Hour)
	ask := func(who string) reply {
		return b.get("/console/why?" + url.Values{"recipient": {who}, "at": {one.SendAt.UTC().Format("2006-01-02T15:04:05")}, "tz": {"utc"}}.Encode())
	}
	for _, typed := range []string{"+4512345678", "token-c-1"} {
		ask(typed).has(t, 200, "C-1 has not been sent a message yet", "C-1 has the address "+typed, "/console/recipients/C-1?")
	}
	ask("+4587654321").has(t, 200, "Several people have the address", ">C-2</a>", ">C-3</a>", "recipient=C-2").lacks(t, "time axis", "Send at next free time")
	ask("+4500000000").has(t, 200, "no recipient has this id or address").lacks(t, "time axis")
}

// refusalStored waits until a refusal of a recipient is in Redis: the submit does not wait for that.
func (b *bundle) refusalStored(t *testing.T, recipient string) {
	t.Helper()
	testenv.Until(t, time.Millisecond, "the refusal is stored", func() bool {
		line, err := b.api.Recipients.Timeline(t.Context(), recipient, client.RecipientTimelineOptions{})
		return err == nil && slices.ContainsFunc(line.Entries, func(e client.TimelineEntry) bool { return e.Kind == client.EntryKindRefused })
	})
}
