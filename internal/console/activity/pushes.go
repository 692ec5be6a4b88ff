package activity

import (
	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/console/frame"
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
