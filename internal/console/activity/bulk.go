package activity

import (
	"net/url"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/bulkchange"
)

// bulkEvery is the interval between updates of the page of a bulk change.
const bulkEvery = time.Second

// bulkView is a change of many pushes that is planned.
type bulkView struct {
	Filter   []bulkField
	Estimate *client.BulkEstimate // nil: not asked for yet
	Changed  bool                 // the form asks for another change than the one that was estimated before
	All      bool                 // there is no filter
}

// bulkField is a member of the filter.
type bulkField struct {
	formField
	At time.Time // of a time
}

// showBulk shows the form to change all scheduled pushes of a filter. The URL has the filter, like the URL of the list.
func showBulk(p *frame.Page) error {
	if err := p.ZoneOf(p.Value("recipient")); err != nil {
		return err
	}
	view, bad := readBulk(p)
	if err := bad.Problem(); err != nil {
		return p.ShowAgain(err, "bulk", bulkTitle, view)
	}
	return p.Show("bulk", bulkTitle, view)
}

const bulkTitle = "Cancel or reschedule messages"

// readBulk is the filter, of the URL or of the form that was sent, and what is wrong with it. Its times are by the clocks that the page
// shows, and exact from then on.
func readBulk(p *frame.Page) (view *bulkView, bad frame.Faults) {
	view = &bulkView{All: true}
	for _, name := range []string{"recipient", "campaign", "channel", "category", "from", "until"} {
		field := bulkField{formField: formField{name, strings.TrimSpace(p.Value(name))}}
		if field.Value == "" {
			continue
		}
		if name == "from" || name == "until" {
			at, err := p.ReadLocal(field.Value)
			if bad.Add(name, err); err == nil {
				field.At, field.Value = at, frame.RFC3339(at)
			}
		}
		view.Filter, view.All = append(view.Filter, field), false
	}
	return view, bad
}

// change returns the bulk change that the form asks for.
func (v *bulkView) change(p *frame.Page) (client.NewBulkChange, frame.Faults) {
	var bad frame.Faults
	c := client.NewBulkChange{Action: client.NewBulkChangeAction(p.Field("action")), All: v.All}
	for _, field := range v.Filter {
		switch field.Name {
		case "recipient":
			c.Filter.Recipient = field.Value
		case "campaign":
			c.Filter.Campaign = field.Value
		case "channel":
			c.Filter.Channel = field.Value
		case "category":
			c.Filter.Category = field.Value
		case "from":
			c.Filter.From = field.At
		case "until":
			c.Filter.Until = field.At
		}
	}
	if c.Action == client.NewBulkChangeActionMove {
		c.Shift = p.Field("shift")
		if p.Field("send_at") != "" {
			at, err := p.FormTime("send_at")
			bad.Add("send_at", err)
			c.SendAt = at
		}
	}
	return c, bad
}

// askedBulk names the change that the form asks for. The form of an estimate carries it: its button starts that change, or none.
func askedBulk(p *frame.Page) string {
	return strings.Join([]string{p.Field("action"), p.Field("shift"), p.Field("send_at")}, ";")
}

// startBulk estimates a bulk change, and starts one that was estimated. The number of pushes is no condition: it falls while they are sent.
func startBulk(p *frame.Page) error {
	if err := p.ZoneOf(p.Value("recipient")); err != nil {
		return err
	}
	view, bad := readBulk(p)
	change, wrong := view.change(p)
	bad = append(bad, wrong...)
	if p.Field("do") == "start" {
		if view.Changed = p.Field("estimated") != askedBulk(p); !view.Changed && len(bad) == 0 {
			made, err := p.API.Pushes.CreateBulkChange(p.Context(), p.Field("once"), change)
			if err != nil {
				return p.ShowAgain(err, "bulk", bulkTitle, view)
			}
			return p.Redirect(p.Link("/pushes/bulk/" + made.ID))
		}
	}
	estimate, err := p.API.Pushes.ValidateCreateBulkChange(p.Context(), change)
	if err := bad.Both(err); err != nil {
		return p.ShowAgain(err, "bulk", bulkTitle, view)
	}
	view.Estimate = &estimate
	return p.Show("bulk", bulkTitle, view)
}

// bulkChangeView is the progress of a bulk change.
type bulkChangeView struct {
	client.BulkChange
	RefusedPushes []client.BulkRefused // the first ones
}

func readBulkChange(p *frame.Page) (*bulkChangeView, error) {
	made, err := p.API.Pushes.GetBulkChange(p.Context(), p.Param("id"))
	if err != nil || made.Refused == 0 {
		return &bulkChangeView{BulkChange: made}, err
	}
	var refused client.BulkRefusedPage
	err = p.API.Get(p.Context(), "/v1/bulk-changes/"+frame.PathPart(made.ID)+"/refused", url.Values{"page_size": {"50"}}, &refused)
	return &bulkChangeView{made, refused.Refused}, err
}

// showBulkChange shows how far a bulk change has come.
func showBulkChange(p *frame.Page) error {
	view, err := readBulkChange(p)
	if err != nil {
		return err
	}
	return p.Show("bulkchange", "Bulk change", view)
}

// streamBulkChange streams how far it has come.
func streamBulkChange(p *frame.Page) error {
	return p.Stream("bulkchange", "live", bulkEvery, func() (any, error) { return readBulkChange(p) })
}

// stopBulk stops a bulk change.
func stopBulk(p *frame.Page) error {
	made, err := p.API.Pushes.CancelBulkChange(p.Context(), p.Param("id"))
	if err != nil {
		return err
	}
	return p.Done("Stopping. Changes already made stay.", p.Link("/pushes/bulk/"+made.ID))
}

// bulkReason explains why a bulk change left a push as it was.
func bulkReason(code string) string {
	switch code {
	case bulkchange.NotScheduled:
		return "sent or ended first"
	case bulkchange.MovedMeanwhile:
		return "moved by another user first"
	case bulkchange.InvalidTime:
		return "the new time is not possible"
	case bulkchange.Failed:
		return "failed; try again"
	}
	return strings.ReplaceAll(code, "-", " ")
}
