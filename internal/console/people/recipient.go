package people

import (
	"cmp"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/sendquota/sendquota/internal/console/axis"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
)

// recipientsView is the search for a recipient and the list of recipients with a profile.
type recipientsView struct{ client.RecipientsPage }

// showRecipients opens a recipient by id, and lists recipients with a profile.
func showRecipients(p *frame.Page) error {
	if id := p.Query("id"); id != "" {
		return p.Redirect(p.Link("/recipients/" + frame.PathPart(id)))
	}
	var view recipientsView
	if p.May(push.ScopeRecipientsRead) {
		query := url.Values{"page_size": {"50"}}
		for _, name := range []string{"opted_out", "page_token"} {
			if v := p.Query(name); v != "" {
				query.Set(name, v)
			}
		}
		if err := p.API.Get(p.Context(), "/v1/recipients", query, &view.RecipientsPage); err != nil {
			return p.ShowAgain(err, "recipients", "Recipients", view)
		}
	}
	return p.Show("recipients", "Recipients", view)
}

// recipientView is one recipient: what is known of it, its time axis, and what can be done there.
type recipientView struct {
	ID       string
	Known    *client.Recipient // nil: nothing is known, or the user may not see it
	Channels []string
	Channel  string // of the push that the axis is about; empty: the first one
	Category string

	Scale        axis.Scale
	At           time.Time // a moment that the axis shows
	Cursor       time.Time
	Axis         template.HTML
	Data         string // of the axis, for its script
	Availability client.Availability
	Pushes       []client.Push
	MorePushes   bool
	Attempts     []client.SendRecord
	MoreAttempts bool
	Legal        cursorAnswer
	Next         time.Time // the free times next to the cursor; zero: there is none
	Previous     time.Time
	Moving       *client.Push // the push to move
	Canceling    *client.Push // the push to cancel
	BecomesFree  []client.Span

	p *frame.Page
}

const (
	pushesOnAxis   = 500 // maximum number of pushes; a notice appears when there are more
	attemptsOnAxis = 500
)

// showRecipient shows the time axis of a recipient.
func showRecipient(p *frame.Page) error {
	view, err := readRecipient(p, time.Time{})
	var invalid *client.Invalid
	if errors.As(err, &invalid) && p.Query("channel")+p.Query("category") != "" { // the axis then shows all kinds, and the form keeps the input
		if view, failed := readAxisOf(p, time.Time{}, "", ""); failed == nil {
			view.Channel, view.Category = p.Query("channel"), p.Query("category")
			return p.ShowAgain(frame.AtField(err, "category", "kind-category"), "recipient", view.ID, view)
		}
	}
	if err != nil {
		return err
	}
	return p.Show("recipient", view.ID, view)
}

// readRecipient makes all calls for the page of a recipient. A posted cursor replaces the cursor of the URL.
func readRecipient(p *frame.Page, cursor time.Time) (*recipientView, error) {
	return readAxisOf(p, cursor, p.Query("channel"), p.Query("category"))
}

// readAxisOf is readRecipient for pushes of a channel and a category.
func readAxisOf(p *frame.Page, cursor time.Time, channel, category string) (*recipientView, error) {
	v := &recipientView{ID: p.Param("id"), Scale: axis.ReadScale(p.Query("scale")), Channel: channel, Category: category, Cursor: cursor, p: p}
	if err := v.readKnown(); err != nil {
		return v, err
	}
	if err := v.readMoving(); err != nil {
		return v, err
	}
	v.readMoments()
	if err := v.readAxis(); err != nil {
		return v, err
	}
	if err := v.readCursor(); err != nil {
		return v, err
	}
	if err := v.readNeighbours(); err != nil {
		return v, err
	}
	v.draw()
	return v, nil
}

// readKnown reads what is known of the recipient, and the channels.
func (v *recipientView) readKnown() error {
	p := v.p
	if p.May(push.ScopeRecipientsRead) {
		known, err := p.Known(v.ID)
		if err != nil {
			return err
		}
		if v.Known = known; known != nil {
			p.UseZone(known.TimeZone)
		}
	}
	if p.May(push.ScopeRead) {
		all, err := p.API.Channels.List(p.Context())
		if err != nil {
			return err
		}
		for _, c := range all.Channels {
			v.Channels = append(v.Channels, c.Name)
		}
	}
	return nil
}

// readMoving reads the push that is to be moved or canceled. The axis is about its channel and category then.
func (v *recipientView) readMoving() error {
	for name, to := range map[string]**client.Push{"move": &v.Moving, "cancel": &v.Canceling} {
		id := v.p.Query(name)
		if id == "" || !v.p.May(push.ScopeWrite) || !v.p.May(push.ScopeRead) {
			continue
		}
		one, err := v.p.API.Pushes.Get(v.p.Context(), id)
		if err != nil {
			return err
		}
		if one.Recipient != v.ID {
			return &client.Problem{Title: "Not Found", Status: http.StatusNotFound, Detail: "the message " + id + " is not one of " + v.ID}
		}
		*to, v.Channel, v.Category = &one, one.Channel, one.Category
	}
	return nil
}

// readMoments reads the cursor and the visible time from the URL. A posted time is always visible.
func (v *recipientView) readMoments() {
	sent := v.Cursor
	v.Cursor = cmp.Or(sent, cursorOf(v.p, "cursor"))
	v.At = cmp.Or(cursorOf(v.p, "at"), v.Cursor, v.p.Now())
	if !sent.IsZero() && !v.sees(sent) {
		v.At = sent
	}
	for _, one := range []*client.Push{v.Moving, v.Canceling} {
		if one != nil && v.p.Query("at") == "" && v.Cursor.IsZero() {
			v.At = one.SendAt
		}
	}
}

// sees reports whether a moment is on the axis.
func (v *recipientView) sees(t time.Time) bool {
	from, until := v.window()
	return !t.Before(from) && t.Before(until)
}

// cursorOf reads a moment of the URL. One that cannot be read is none.
func cursorOf(p *frame.Page, name string) time.Time {
	at, err := p.ReadTime(p.Query(name), p.TypedIn(p.Request.URL.Query()))
	if err != nil {
		return time.Time{}
	}
	return at.Truncate(time.Second).UTC()
}

// readAxis reads the content of the axis. A recipient without a zone has the zone of the policy, which is in the answer. If the page shows
// that zone, readAxis reads again.
func (v *recipientView) readAxis() error {
	p := v.p
	for {
		shown := p.Zones.Shown().String()
		from, until := v.window()
		o := client.RecipientAvailabilityOptions{From: from, Until: until, Channel: v.Channel, Category: v.Category}
		if v.Moving != nil {
			o.Without = v.Moving.ID
		}
		var err error
		if v.Availability, err = p.API.Quota.RecipientAvailability(p.Context(), v.ID, o); err != nil {
			return err
		}
		if p.UseZone(v.Availability.TimeZone); p.Zones.Shown().String() == shown {
			break
		}
	}
	if v.Canceling != nil {
		from, until := v.window()
		without, err := p.API.Quota.RecipientAvailability(p.Context(), v.ID, client.RecipientAvailabilityOptions{From: from, Until: until, Channel: v.Channel, Category: v.Category, Without: v.Canceling.ID})
		if err != nil {
			return err
		}
		v.BecomesFree = spansWithout(without.Free, v.Availability.Free)
	}
	return v.readPushes()
}

func (v *recipientView) window() (from, until time.Time) {
	return v.Scale.Window(v.At, v.p.Zones.Shown())
}

// readPushes reads the pushes and the attempts of the axis, as far as the user may see them.
func (v *recipientView) readPushes() error {
	p := v.p
	from, until := v.window()
	query := url.Values{"recipient": {v.ID}, "from": {frame.RFC3339(from)}, "until": {frame.RFC3339(until)}, "page_size": {strconv.Itoa(pushesOnAxis)}}
	if p.May(push.ScopeRead) {
		var found client.PushesPage
		if err := p.API.Get(p.Context(), "/v1/pushes", query, &found); err != nil {
			return err
		}
		v.Pushes, v.MorePushes = found.Pushes, found.NextPageToken != ""
	}
	if p.May(push.ScopeRecordsRead) && from.Before(p.Now()) {
		var found client.SendsPage
		query.Set("page_size", strconv.Itoa(attemptsOnAxis))
		if err := p.API.Get(p.Context(), "/v1/sends", query, &found); err != nil {
			return err
		}
		v.Attempts, v.MoreAttempts = found.Sends, found.NextPageToken != ""
	}
	return nil
}
