package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"reflect"
	"time"
)

// list reads a list page by page, and yields its items. It ends after an error.
func list[P, V any](ctx context.Context, c *Client, path string, p params, read func(P) (items []V, next string)) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		query := p.values()
		for {
			page, err := ask[P](ctx, c, call{method: http.MethodGet, path: path, query: query, repeat: true})
			if err != nil {
				var none V
				yield(none, err)
				return
			}
			items, token := read(page)
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if token == "" {
				return
			}
			query.Set("page_token", token)
		}
	}
}

// params are the parameters of a query. What is zero is left out.
type params map[string]any

func (p params) values() url.Values {
	v := url.Values{}
	for name, value := range p {
		if at, ok := value.(time.Time); ok && !at.IsZero() {
			v.Set(name, at.Format(time.RFC3339Nano))
		} else if !ok && !reflect.ValueOf(value).IsZero() {
			v.Set(name, fmt.Sprint(value))
		}
	}
	return v
}

// dayOf is the day of UTC of a time; empty: there is none.
func dayOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}
