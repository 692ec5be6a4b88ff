package frame

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
)

// List reads a page of a list of the API by the filter that stands in the URL. Of a filter that cannot be read, the API is asked only
// what else is wrong with it.
func (p *Page) List(path string, size int, into any, names ...string) error {
	query, bad, err := p.Filter(names...)
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		into, size = new(json.RawMessage), min(size, 1)
	}
	if size > 0 {
		query.Set("page_size", strconv.Itoa(size))
	}
	return bad.Both(p.API.Get(p.Context(), path, query, into))
}

// Filter takes parameters from the URL of the page for a call: those that are named, and from and until, which stand there as
// a browser writes them, and what is wrong with these. The page knows the zone of the recipient of the filter.
func (p *Page) Filter(names ...string) (query url.Values, bad Faults, err error) {
	query = url.Values{}
	if err := p.ZoneOf(p.Query("recipient")); err != nil {
		return query, nil, err
	}
	for _, name := range names {
		if v := p.Query(name); v != "" {
			query.Set(name, v)
		}
	}
	for _, name := range []string{"from", "until"} {
		if v := p.Query(name); v != "" {
			at, err := p.ReadTime(v, p.TypedIn(p.Request.URL.Query()))
			if bad.Add(name, err); err == nil {
				query.Set(name, RFC3339(at))
			}
		}
	}
	return query, bad, nil
}

// ReadExact reads an answer of the API without rounding: numbers of a message keep their spelling.
func (p *Page) ReadExact(path string, into any) error {
	var text json.RawMessage
	if err := p.API.Get(p.Context(), path, nil, &text); err != nil {
		return err
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	return in.Decode(into)
}
