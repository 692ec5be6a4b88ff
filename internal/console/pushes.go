package console

import (
	"net/url"

	"github.com/sendquota/sendquota/client"
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

// pushes lists pushes by a filter, which stands in the URL.
func (p *page) pushes() error {
	status := client.PushStatus(p.query("status"))
	view := pushesView{Statuses: pushStatuses, Bulk: p.query("reason") == "" && (status == "" || status == client.PushStatusScheduled)}
	query, err := p.filter("recipient", "status", "channel", "category", "campaign", "reason", "page_token")
	if err == nil {
		query.Set("page_size", "50")
		err = p.api.Get(p.ctx(), "/v1/pushes", query, &view.PushesPage)
	}
	if err != nil {
		view.Bulk = false
		return p.again(err, "pushes", "Pushes", view)
	}
	return p.show("pushes", "Pushes", view)
}

// filter takes parameters from the URL of the page for a call: those that are named, and from and until, which stand there as
// a browser writes them. The page knows the zone of the recipient of the filter.
func (p *page) filter(names ...string) (url.Values, error) {
	query := url.Values{}
	if err := p.zoneOf(p.query("recipient")); err != nil {
		return query, err
	}
	for _, name := range names {
		if v := p.query(name); v != "" {
			query.Set(name, v)
		}
	}
	faults := faults{}
	for _, name := range []string{"from", "until"} {
		if v := p.query(name); v != "" {
			at, err := p.readTime(v, p.typedIn(p.r.URL.Query()))
			faults.add(name, err)
			query.Set(name, rfc3339(at))
		}
	}
	return query, faults.problem()
}
