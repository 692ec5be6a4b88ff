package console

import (
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/sendquota/sendquota/client"
)

// bulkEvery is how often the page of a bulk change looks how far it is.
const bulkEvery = time.Second

// bulkView is a change of many pushes that is planned.
type bulkView struct {
	Filter   []formField
	Estimate *client.BulkEstimate // nil: not asked for yet
	All      bool                 // there is no filter
}

// bulk shows the form for a change of all scheduled pushes of a filter, which stands in the URL as that of the list.
func (p *page) bulk() error {
	return p.show("bulk", "Change many pushes", p.readBulk())
}

// readBulk is the filter, of the URL or of the form that was sent.
func (p *page) readBulk() *bulkView {
	view := &bulkView{All: true}
	for _, name := range []string{"recipient", "campaign", "channel", "category", "from", "until"} {
		if v := p.Value(name); v != "" {
			view.Filter, view.All = append(view.Filter, formField{name, v}), false
		}
	}
	return view
}

// change is what the form asks for.
func (v *bulkView) change(p *page) (client.NewBulkChange, faults) {
	var bad faults
	c := client.NewBulkChange{Action: client.NewBulkChangeAction(p.form("action")), All: v.All, Filter: client.NewBulkFilter{
		Recipient: p.form("recipient"), Campaign: p.form("campaign"), Channel: p.form("channel"), Category: p.form("category"),
	}}
	for name, at := range map[string]*time.Time{"from": &c.Filter.From, "until": &c.Filter.Until, "send_at": &c.SendAt} {
		if text := p.form(name); text != "" && (name != "send_at" || c.Action == client.NewBulkChangeActionMove) {
			read, err := p.readLocal(text)
			bad.add(name, err)
			*at = read
		}
	}
	if c.Action == client.NewBulkChangeActionMove {
		c.Shift = p.form("shift")
	}
	return c, bad
}

// startBulk says what a bulk change would do, and starts it when the number of pushes is typed.
func (p *page) startBulk() error {
	view := p.readBulk()
	change, bad := view.change(p)
	estimate, err := p.api.EstimateBulkChange(p.ctx(), change)
	if err := bad.both(err); err != nil {
		return p.again(err, "bulk", "Change many pushes", view)
	}
	view.Estimate = &estimate
	if p.form("do") != "start" {
		return p.show("bulk", "Change many pushes", view)
	}
	if p.form("confirm") != strconv.FormatInt(estimate.Found, 10) {
		bad.add("confirm", errors.New("type the number of pushes that it concerns now: "+strconv.FormatInt(estimate.Found, 10)))
		return p.again(bad.problem(), "bulk", "Change many pushes", view)
	}
	made, err := p.api.CreateBulkChange(p.ctx(), p.form("once"), change)
	if err != nil {
		return p.again(err, "bulk", "Change many pushes", view)
	}
	return p.redirect(p.Link("/pushes/bulk/" + made.ID))
}

// bulkChangeView is how far a bulk change has come.
type bulkChangeView struct {
	client.BulkChange
	RefusedPushes []client.BulkRefused // the first ones
}

func (p *page) readBulkChange() (*bulkChangeView, error) {
	made, err := p.api.BulkChange(p.ctx(), p.param("id"))
	if err != nil || made.Refused == 0 {
		return &bulkChangeView{BulkChange: made}, err
	}
	var refused client.BulkRefusedPage
	err = p.api.Get(p.ctx(), "/v1/bulk-changes/"+pathPart(made.ID)+"/refused", url.Values{"page_size": {"50"}}, &refused)
	return &bulkChangeView{made, refused.Refused}, err
}

// bulkChange shows how far a bulk change has come.
func (p *page) bulkChange() error {
	view, err := p.readBulkChange()
	if err != nil {
		return err
	}
	return p.show("bulkchange", "Change of many pushes", view)
}

// bulkLive streams how far it has come.
func (p *page) bulkLive() error {
	return p.stream("bulkchange", "live", bulkEvery, func() (any, error) { return p.readBulkChange() })
}

// stopBulk stops a bulk change.
func (p *page) stopBulk() error {
	made, err := p.api.CancelBulkChange(p.ctx(), p.param("id"))
	if err != nil {
		return err
	}
	return p.done("It stops. What was changed stays changed.", p.Link("/pushes/bulk/"+made.ID))
}
