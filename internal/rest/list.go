package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// The usual sizes of pages.
const (
	DefaultPageSize = "50"
	MaxPageSize     = 500
)

// PageParams selects a page of a list. The filter of a list embeds it.
type PageParams struct {
	Size  int
	token string
}

func (p *PageParams) paging() *PageParams { return p }

// paged is a pointer to a filter.
type paged[Q any] interface {
	*Q
	paging() *PageParams
}

// Pages returns the table of a list's query: the rows of its filter, the size and the token of the page.
func Pages[Q any, PQ paged[Q]](filter ...Field[Q]) Table[Q] {
	return PagesOf[Q, PQ](MaxPageSize, DefaultPageSize, append(slices.Clip(filter), PageToken[Q, PQ](UsualToken))...)
}

// PagesOf is [Pages] with another size of pages, for a filter that ends with the row of the token.
func PagesOf[Q any, PQ paged[Q]](most int, preset string, filter ...Field[Q]) Table[Q] {
	size := Row("page_size", Optional, Integer(func(q *Q, n int) { PQ(q).paging().Size = n }, 1, most).Or(preset), "The maximum number of results.", nil)
	return Table[Q]{Fields: slices.Insert(slices.Clone(filter), len(filter)-1, size)}
}

// The origins of tokens: of any list, and of a list with an export.
const (
	UsualToken    = "The next_page_token of the previous page."
	ExportedToken = "The next_page_token of the previous page, or the page_token of an exported line."
)

// PageToken returns the row of the token.
func PageToken[Q any, PQ paged[Q]](origin string) Field[Q] {
	return Row("page_token", Optional, Token(func(q *Q, s string) { PQ(q).paging().token = s }), origin+" Use it with the same filters.", nil)
}

// ReadPage reads the filter of a list and the position after which the page begins. The zero position is the
// beginning.
func ReadPage[P, Q any, PQ paged[Q]](c *Call, params *Table[Q]) (q Q, after P, list string) {
	params.ReadQuery(c.Request, &q, &c.Errors)
	page := PQ(&q).paging()
	given := *page
	*page = PageParams{}
	list = listName(c.Request.URL.Path, q)
	readPageToken(given.token, c.Caller.Tenant, list, &after, &c.Errors)
	*page = given
	return q, after, list
}

// listName returns a name for a list with its filter. An export has the name of its list.
func listName(path string, filter any) string {
	return fmt.Sprintf("%s %#v", strings.TrimSuffix(path, "/export"), filter)
}

// List answers with a page of a list. read returns the entries after a position that match a filter, and the position of the next page, or nil.
func List[Q, P, T any, PQ paged[Q]](c *Call, params *Table[Q], read func(q Q, after P) ([]T, *P, error), view func(all []T, next string) any) error {
	q, after, list := ReadPage[P, Q, PQ](c, params)
	if err := c.Ready(PageBytes); err != nil {
		return err
	}
	all, next, err := read(q, after)
	if err != nil {
		return err
	}
	return c.Compute(func() error {
		var token string
		if next != nil {
			token = SealToken(*next, c.Caller.Tenant, list)
		}
		return c.Answer(http.StatusOK, view(all, token))
	})
}
