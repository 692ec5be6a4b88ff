package console

import (
	"net/url"
	"strings"
)

// navItem is an entry of the menu.
type navItem struct{ Path, Name, Scope string }

// Nav are the entries of the menu that the user's role can open.
func (p *page) Nav() []navItem {
	var items []navItem
	for _, item := range p.site.menu {
		if item.Scope == "" || p.May(item.Scope) {
			items = append(items, item)
		}
	}
	return items
}

// Here reports whether the page belongs to an entry of the menu.
func (p *page) Here(item navItem) bool {
	path := strings.TrimPrefix(p.r.URL.Path, root)
	return path == item.Path || strings.HasPrefix(path, item.Path+"/")
}

// Link is a path of the console with a query, given as names and values. An empty value leaves its name out. The choice of the
// time zone goes along.
func (p *page) Link(path string, query ...string) string {
	v := url.Values{}
	if p.Zones.Chosen != "" {
		v.Set(zoneParam, p.Zones.Chosen)
	}
	return withQuery(root+path, v, query)
}

// Same is the address of this page with other values in its query.
func (p *page) Same(query ...string) string {
	return withQuery(p.r.URL.EscapedPath(), p.r.URL.Query(), query)
}

func withQuery(path string, v url.Values, query []string) string {
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
