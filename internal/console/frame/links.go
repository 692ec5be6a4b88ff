package frame

import (
	"net/url"
	"strings"
)

// Nav returns the entries of the menu that the user's role can open.
func (p *Page) Nav() []NavItem {
	var items []NavItem
	for _, item := range p.site.menu {
		if item.Scope == "" || p.May(item.Scope) {
			items = append(items, item)
		}
	}
	return items
}

// Here reports whether the page belongs to an entry of the menu.
func (p *Page) Here(item NavItem) bool {
	path := strings.TrimPrefix(p.Request.URL.Path, Root)
	return path == item.Path || strings.HasPrefix(path, item.Path+"/")
}

// Link returns a path of the console with a query, given as names and values. Empty values are left out. The chosen time zone is kept.
func (p *Page) Link(path string, query ...string) string {
	v := url.Values{}
	if p.Zones.Chosen != "" {
		v.Set(zoneParam, p.Zones.Chosen)
	}
	return WithQuery(Root+path, v, query)
}

// Same returns the address of this page with changed values in its query.
func (p *Page) Same(query ...string) string {
	return WithQuery(p.Request.URL.EscapedPath(), p.Request.URL.Query(), query)
}

func WithQuery(path string, v url.Values, query []string) string {
	for i := 0; i+1 < len(query); i += 2 {
		if query[i+1] == "" {
			v.Del(query[i])
		} else {
			v.Set(query[i], query[i+1])
		}
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}
