package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// list reads a list page by page, and yields its items. It ends after an error.
func list[P, V any](ctx context.Context, c *Client, path string, query url.Values, read func(P) (items []V, next string)) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		token := ""
		for {
			if token != "" {
				query.Set("page_token", token)
			}
			page, err := ask[P](ctx, c, call{method: http.MethodGet, path: path, query: query, repeat: true})
			if err != nil {
				var none V
				yield(none, err)
				return
			}
			var items []V
			items, token = read(page)
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if token == "" {
				return
			}
		}
	}
}

// params are the parameters of a query. What is zero is left out.
type params map[string]any

func (p params) values() url.Values {
	v := url.Values{}
	for name, value := range p {
		switch value := value.(type) {
		case string:
			if value != "" {
				v.Set(name, value)
			}
		case bool:
			if value {
				v.Set(name, "true")
			}
		case int:
			if value != 0 {
				v.Set(name, strconv.Itoa(value))
			}
		case time.Time:
			if !value.IsZero() {
				v.Set(name, value.Format(time.RFC3339Nano))
			}
		}
	}
	return v
}

// pageSize has lists come in few requests.
const pageSize = 500
