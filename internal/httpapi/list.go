package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

const (
	defaultPageSize = "50"
	maxPageSize     = 500
)

// pageParams is which page of a list is asked for. The filter of a list embeds it.
type pageParams struct {
	size  int
	token string
}

func (p *pageParams) paging() *pageParams { return p }

// paged is a pointer to a filter.
type paged[Q any] interface {
	*Q
	paging() *pageParams
}

// pages is the table of a list's query: the rows of its filter, and which page is asked for.
func pages[Q any, PQ paged[Q]](filter ...field[Q]) table[Q] {
	return pagesOf[Q, PQ](maxPageSize, defaultPageSize, append(slices.Clip(filter), pageToken[Q, PQ](usualToken))...)
}

// pagesOf is the table of a list with pages of another size, whose filter ends with the row of the token.
func pagesOf[Q any, PQ paged[Q]](most int, preset string, filter ...field[Q]) table[Q] {
	size := row("page_size", optional, integer(func(q *Q, n int) { PQ(q).paging().size = n }, 1, most).or(preset), "The maximum number of results.", nil)
	return table[Q]{fields: slices.Insert(slices.Clone(filter), len(filter)-1, size)}
}

// What tokens are: of any list, and of one that can be exported.
const (
	usualToken    = "The next_page_token of the previous page."
	exportedToken = "The next_page_token of the previous page, or the page_token of an exported line."
)

// pageToken is the row of the token.
func pageToken[Q any, PQ paged[Q]](origin string) field[Q] {
	return row("page_token", optional, token(func(q *Q, s string) { PQ(q).paging().token = s }), origin+" Use it with the same filters.", nil)
}

// readPage reads which part of a list a request asks for: its filter, and the position behind which it begins. The zero position is the
// beginning.
func readPage[P, Q any, PQ paged[Q]](c *call, params *table[Q]) (q Q, after P, list string) {
	params.readQuery(c.r, &q, &c.bad)
	page := PQ(&q).paging()
	given := *page
	*page = pageParams{}
	list = listName(c.r.URL.Path, q)
	readPageToken(given.token, c.caller.Tenant, list, &after, &c.bad)
	*page = given
	return q, after, list
}

// listName tells lists apart, and those with other filters. An export has the name of its list.
func listName(path string, filter any) string {
	return fmt.Sprintf("%s %#v", strings.TrimSuffix(path, "/export"), filter)
}

// list answers with a page of a list: read returns what fits a filter, from behind a position, and where the next page begins; nil: nowhere.
func list[Q, P, T any, PQ paged[Q]](c *call, params *table[Q], read func(q Q, after P) ([]T, *P, error), view func(all []T, next string) any) error {
	q, after, list := readPage[P, Q, PQ](c, params)
	if err := c.ready(pageBytes); err != nil {
		return err
	}
	all, next, err := read(q, after)
	if err != nil {
		return err
	}
	return c.compute(func() error {
		var token string
		if next != nil {
			token = sealToken(*next, c.caller.Tenant, list)
		}
		return c.answer(http.StatusOK, view(all, token))
	})
}
