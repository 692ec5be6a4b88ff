package console

import (
	"encoding/json"
	"net/url"
	"strconv"

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
	status := client.PushStatus(p.Query("status"))
	view := pushesView{Statuses: pushStatuses, Bulk: p.Query("reason") == "" && (status == "" || status == client.PushStatusScheduled)}
	err := p.list("/v1/pushes", 50, &view.PushesPage, "recipient", "status", "channel", "category", "campaign", "reason", "page_token")
	if err != nil {
		view.Bulk = false
		return p.again(err, "pushes", "Messages", view)
	}
	return p.show("pushes", "Messages", view)
}

// filter takes parameters from the URL of the page for a call: those that are named, and from and until, which stand there as
// a browser writes them, and what is wrong with these. The page knows the zone of the recipient of the filter.
func (p *page) filter(names ...string) (query url.Values, bad faults, err error) {
	query = url.Values{}
	if err := p.zoneOf(p.Query("recipient")); err != nil {
		return query, nil, err
	}
	for _, name := range names {
		if v := p.Query(name); v != "" {
			query.Set(name, v)
		}
	}
	for _, name := range []string{"from", "until"} {
		if v := p.Query(name); v != "" {
			at, err := p.ReadTime(v, p.TypedIn(p.r.URL.Query()))
			if bad.add(name, err); err == nil {
				query.Set(name, rfc3339(at))
			}
		}
	}
	return query, bad, nil
}

// list reads a page of a list of the API by the filter that stands in the URL. Of a filter that cannot be read, the API is asked only
// what else is wrong with it.
func (p *page) list(path string, size int, into any, names ...string) error {
	query, bad, err := p.filter(names...)
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		into, size = new(json.RawMessage), min(size, 1)
	}
	if size > 0 {
		query.Set("page_size", strconv.Itoa(size))
	}
	return bad.both(p.api.Get(p.ctx(), path, query, into))
}
