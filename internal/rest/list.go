package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

const (
	DefaultPageSize = "50"
	MaxPageSize     = 500
)

// PageParams is which page of a list is asked for. The filter of a list embeds it.
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

// Pages is the table of a list's query: the rows of its filter, and which page is asked for.
func Pages[Q any, PQ paged[Q]](filter ...Field[Q]) Table[Q] {
	return PagesOf[Q, PQ](MaxPageSize, DefaultPageSize, append(slices.Clip(filter), PageToken[Q, PQ](UsualToken))...)
}

// PagesOf is the table of a list with pages of another size, whose filter ends with the row of the token.
func PagesOf[Q any, PQ paged[Q]](most int, preset string, filter ...Field[Q]) Table[Q] {
	size := Row("page_size", Optional, Integer(func(q *Q, n int) { PQ(q).paging().Size = n }, 1, most).Or(preset), "The maximum number of results.", nil)
	return Table[Q]{Fields: slices.Insert(slices.Clone(filter), len(filter)-1, size)}
}

// What tokens are: of any list, and of one that can be exported.
const (
	UsualToken    = "The next_page_token of the previous page."
	ExportedToken = "The next_page_token of the previous page, or the page_token of an exported line."
)

// PageToken is the row of the token.
func PageToken[Q any, PQ paged[Q]](origin string) Field[Q] {
	return Row("page_token", Optional, Token(func(q *Q, s string) { PQ(q).paging().token = s }), origin+" Use it with the same filters.", nil)
}

// ReadPage reads which part of a list a request asks for: its filter, and the position behind which it begins. The zero position is the
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

// listName tells lists apart, and those with other filters. An export has the name of its list.
func listName(path string, filter any) string {
	return fmt.Sprintf("%s %#v", strings.TrimSuffix(path, "/export"), filter)
}

// List answers with a page of a list: read returns what fits a filter, from behind a position, and where the next page begins; nil: nowhere.
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
