package httpapi

import (
	"net/http"
	"strconv"

	"github.com/sendquota/sendquota/internal/policy"
)

// versionsParams is which page of the versions is asked for.
var versionsParams = table[pageParams]{fields: []field[pageParams]{
	{"page_size", optional, integer(func(q *pageParams, n int) { q.size = n }, 1, maxVersions).or(strconv.Itoa(defaultVersions)), "How many versions to answer with, at most.", nil},
	{"page_token", optional, token(func(q *pageParams, s string) { q.token = s }), "The next_page_token of the page before.", nil},
}}

// A version has up to 64 KiB.
const maxVersions, defaultVersions = 100, 50

func (a *api) listVersions(c *call) error {
	var (
		bad    fieldErrors
		q      pageParams
		before int64
		list   = func() string { return "policy versions" }
	)
	versionsParams.readQuery(c.r, &q, &bad)
	readPageToken(q.token, c.caller.Tenant, list, &before, &bad)
	if err := bad.err(); err != nil {
		return err
	}
	if err := c.reserve(pageBytes); err != nil {
		return err
	}
	all, err := a.cfg.Policies.Versions(c.r.Context(), c.caller.Tenant, before, q.size+1)
	if err != nil {
		return err
	}
	var v versionsView
	if len(all) > q.size {
		all = all[:q.size]
		v.NextPageToken = pageToken(all[q.size-1].Number, c.caller.Tenant, list())
	}
	v.Versions = viewsOf(all, func(one policy.Version) versionView {
		view := versionView{Version: one.Number, At: stamp(one.At), By: one.By}
		if one.Document != nil {
			view.Policy.documentView = new(documentViewOf(*one.Document))
		}
		return view
	})
	return a.answer(c.w, http.StatusOK, v)
}

func (a *api) getOperation(c *call) error {
	var bad fieldErrors
	c.noQuery(&bad)
	id := c.pathID("id", &bad)
	if err := bad.err(); err != nil {
		return err
	}
	o, err := a.cfg.Policies.Operation(c.r.Context(), c.caller.Tenant, id)
	if err != nil {
		return noSuch("operation", err)
	}
	return a.answer(c.w, http.StatusOK, operationViewOf(o))
}
