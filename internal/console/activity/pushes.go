package activity

import (
	"net/url"
	"slices"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/push"
)

// pushesView is the list of pushes.
type pushesView struct {
	client.PushesPage
	Statuses []client.PushStatus
	Bulk     bool // a bulk change has the same filter: it would change nothing that the list does not show
}

var pushStatuses = []client.PushStatus{
	client.PushStatusScheduled, client.PushStatusSending, client.PushStatusSent, client.PushStatusFailed, client.PushStatusCanceled, client.PushStatusExpired,
}

// showPushes lists pushes by a filter, which stands in the URL.
func showPushes(p *frame.Page) error {
	status := client.PushStatus(p.Query("status"))
	view := pushesView{Statuses: pushStatuses, Bulk: p.Query("reason") == "" && (status == "" || status == client.PushStatusScheduled)}
	err := p.List("/v1/pushes", 50, &view.PushesPage, "recipient", "status", "channel", "category", "campaign", "reason", "page_token")
	if err != nil {
		view.Bulk = false
		return p.ShowAgain(err, "pushes", "Messages", view)
	}
	return p.Show("pushes", "Messages", view)
}

// pushView is a push with its history and the preview of a change.
type pushView struct {
	client.Push
	Events  []client.TimelineEntry
	Checked *checkedChange
}

// checkedChange is a change that the API would accept.
type checkedChange struct {
	Action string // move or retry
	client.Push
	Again bool // the retry is there already
}

// showPush shows one push, and what has happened to it.
func showPush(p *frame.Page) error {
	view, err := readPush(p)
	if err != nil {
		return err
	}
	return p.Show("push", "Message for "+view.Recipient, view)
}

func readPush(p *frame.Page) (*pushView, error) {
	one, err := p.API.Pushes.Get(p.Context(), p.Param("id"))
	if err != nil {
		return nil, err
	}
	if err := p.ZoneOf(one.Recipient); err != nil {
		return nil, err
	}
	view := &pushView{Push: one}
	if !p.May(push.ScopeRecipientsRead) {
		return view, nil
	}
	var past client.Timeline
	query := url.Values{"from": {frame.RFC3339(one.CreatedAt.Add(-time.Second))}, "until": {frame.RFC3339(laterOf(p.Now(), one.UpdatedAt).Add(time.Second))}}
	if err := p.API.Get(p.Context(), "/v1/recipients/"+frame.PathPart(one.Recipient)+"/timeline", query, &past); err != nil {
		return nil, err
	}
	view.Events = slices.DeleteFunc(past.Entries, func(e client.TimelineEntry) bool { return e.Push != one.ID })
	return view, nil
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// pushAgain shows the push with a refused change or a preview.
func pushAgain(p *frame.Page, why error, checked *checkedChange) error {
	view, err := readPush(p)
	if err != nil {
		return err
	}
	if why != nil {
		return p.ShowAgain(why, "push", "Message for "+view.Recipient, view)
	}
	view.Checked = checked
	return p.Show("push", "Message for "+view.Recipient, view)
}

// zoneOfPush has the page know the zone of the push's recipient before a time of a form is read in it.
func zoneOfPush(p *frame.Page) error {
	if p.Zones.Chosen != "recipient" {
		return nil
	}
	one, err := p.API.Pushes.Get(p.Context(), p.Param("id"))
	if err != nil {
		return err
	}
	return p.ZoneOf(one.Recipient)
}

// cancelPush cancels one push.
func cancelPush(p *frame.Page) error {
	one, err := p.API.Pushes.Cancel(p.Context(), p.Param("id"))
	if err != nil {
		return pushAgain(p, err, nil)
	}
	return p.Done("The message for "+one.Recipient+" is canceled and no longer counts towards limits.", p.Link("/pushes/"+one.ID))
}

// moveOnePush previews a move, or moves the push.
func moveOnePush(p *frame.Page) error {
	if err := zoneOfPush(p); err != nil {
		return err
	}
	p.TakeNextFree("move_to")
	at, err := p.FormTime("move_to")
	if err != nil {
		var bad frame.Faults
		bad.Add("move_to", err)
		return pushAgain(p, bad.Problem(), nil)
	}
	id, to := p.Param("id"), client.NewTime{SendAt: at}
	if p.Field("do") != "move" {
		checked, err := p.API.Pushes.ValidateReschedule(p.Context(), id, to)
		return pushAgain(p, frame.AtField(err, "send_at", "move_to"), &checkedChange{Action: "move", Push: checked})
	}
	moved, err := p.API.Pushes.Reschedule(p.Context(), id, to)
	if err != nil {
		return pushAgain(p, frame.AtField(err, "send_at", "move_to"), nil)
	}
	return p.Done("The message for "+moved.Recipient+" is moved to "+p.PlainTime(moved.SendAt)+".", p.Link("/pushes/"+moved.ID))
}

// retryOnePush previews a retry, or books it.
func retryOnePush(p *frame.Page) error {
	if err := zoneOfPush(p); err != nil {
		return err
	}
	p.TakeNextFree("retry_at")
	id, how := p.Param("id"), client.NewRetry{OnConflict: client.NewRetryOnConflict(p.Field("on_conflict"))}
	var bad frame.Faults
	for name, at := range map[string]*time.Time{"retry_at": &how.SendAt, "expires_at": &how.ExpiresAt} {
		if p.Field(name) != "" {
			var err error
			*at, err = p.FormTime(name)
			bad.Add(name, err)
		}
	}
	if err := bad.Problem(); err != nil {
		return pushAgain(p, err, nil)
	}
	if p.Field("do") != "retry" {
		checked, err := p.API.Pushes.ValidateRetry(p.Context(), id, how)
		return pushAgain(p, frame.AtField(err, "send_at", "retry_at"), &checkedChange{Action: "retry", Push: checked, Again: p.Made.Last().Status == 200})
	}
	retry, err := p.API.Pushes.Retry(p.Context(), p.Field("once"), id, how)
	if err != nil {
		return pushAgain(p, frame.AtField(err, "send_at", "retry_at"), nil)
	}
	return p.Done("This is the retry, scheduled for "+p.PlainTime(retry.SendAt)+".", p.Link("/pushes/"+retry.ID))
}

// newPushView is the form for one push.
type newPushView struct {
	Channels []client.Channel
	Checked  *client.Push
}

// newPush shows the form for one push.
func newPush(p *frame.Page) error {
	view, err := readNewPush(p)
	if err != nil {
		return err
	}
	return p.Show("pushnew", "Send a message", view)
}

func readNewPush(p *frame.Page) (*newPushView, error) {
	report, err := p.API.Channels.List(p.Context())
	return &newPushView{Channels: report.Channels}, err
}

// submitOnePush books a push, or previews it.
func submitOnePush(p *frame.Page) error {
	view, err := readNewPush(p)
	if err != nil {
		return err
	}
	p.TakeNextFree("send_at")
	var bad frame.Faults
	one := client.NewPush{
		Recipient: p.Field("recipient"), Channel: p.Field("channel"), Category: p.Field("category"), To: p.Field("to"), OnConflict: client.NewPushOnConflict(p.Field("on_conflict")),
	}
	if p.Field("send_at") != "" {
		one.SendAt, err = p.FormTime("send_at")
		bad.Add("send_at", err)
	}
	one.Message, err = p.FormMessage()
	bad.Add("message", err)
	if p.Field("do") == "check" || len(bad) > 0 { // of a push that is booked already, it would say that there is no place
		checked, err := p.API.Pushes.ValidateSubmit(p.Context(), one)
		if err := bad.Both(err); err != nil {
			return p.ShowAgain(err, "pushnew", "Send a message", view)
		}
		view.Checked = &checked
		return p.Show("pushnew", "Send a message", view)
	}
	booked, err := p.API.Pushes.Submit(p.Context(), p.Field("once"), one)
	if err != nil {
		return p.ShowAgain(err, "pushnew", "Send a message", view)
	}
	return p.Done("Scheduled for "+p.PlainTime(booked.SendAt)+".", p.Link("/pushes/"+booked.ID))
}
