package httpapi

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

const (
	defaultPageSize = 50
	maxPageSize     = 500
)

// pageView is one page of a list.
type pageView struct {
	Pushes        []*pushView `json:"pushes"`
	NextPageToken string      `json:"next_page_token" doc:"For page_token, to get the next page; empty at the end of the list, and only there: a page may have fewer pushes than page_size, or none, before it."`
}

// list answers with a page of the tenant's pushes, by send time.
func (a *api) list(c *call) error {
	var bad faults
	q := readQuery(c.r, &bad, "recipient", "status", "channel", "category", "from", "until", "page_size", "page_token")
	f := store.Filter{
		Recipient: q.text("recipient", maxRecipient), Channel: q.text("channel", maxChannel), Category: q.text("category", maxCategory),
		Status: push.Status(q.oneOf("status", statusNames()...)),
		From:   q.time("from", time.Time{}), Until: q.time("until", time.Time{}),
	}
	size := q.int("page_size", defaultPageSize, 1, maxPageSize)
	after, ok := readPageToken(q.values.Get("page_token"), c.caller.Tenant, f)
	if !ok && len(bad.list) == 0 { // else other faults have changed the filter
		q.bad("page_token", "is not a token of this list, with these filters", q.values.Get("page_token"))
	}
	if err := bad.err(); err != nil {
		return err
	}
	if err := c.reserve(pageBytes); err != nil {
		return err
	}
	page, err := a.svc.List(c.r.Context(), c.caller.Tenant, f, after, size)
	if err != nil {
		return err
	}
	return c.compute(func() error {
		v := pageView{Pushes: make([]*pushView, len(page.Pushes))}
		for i, p := range page.Pushes {
			v.Pushes[i] = viewOf(p)
		}
		if page.Next != nil {
			v.NextPageToken = pageToken(*page.Next, c.caller.Tenant, f)
		}
		return a.answer(c.w, http.StatusOK, v)
	})
}

func statusNames() []string {
	names := make([]string, len(push.Statuses))
	for i, s := range push.Statuses {
		names[i] = string(s)
	}
	return names
}

func listDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "list-pushes", Method: http.MethodGet, Path: submitPath, Tags: []string{tagPushes},
		Summary: "List pushes",
		Description: "By send time. Filters can be combined; an empty one counts as absent. A page ends early at about 1 MiB of pushes, and when " +
			"10,000 pushes were looked at for those that fit: the list goes on as long as there is a next_page_token.",
		Parameters: []*huma.Param{
			s.query("recipient", "Only this recipient's.", "user-42"),
			s.enum("status", "Only those in this state.", statusNames()...),
			s.query("channel", "Only those through this channel.", "push"),
			s.query("category", "Only those of this category.", "marketing"),
			s.time("from", "Only those with a send time not before this."),
			s.time("until", "Only those with a send time before this."),
			s.int("page_size", "How many pushes to answer with, at most.", defaultPageSize, 1, maxPageSize),
			s.query("page_token", "The next_page_token of the page before. It goes with the same filters.", ""),
		},
		Responses: s.responses(http.StatusOK, "A page of pushes.", pageView{}, examplePage(), invalidRequest),
	}
}
