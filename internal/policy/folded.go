package policy

import (
	"maps"

	"github.com/sendquota/sendquota/internal/quota"
)

// Folded returns a document with its names in their stored form; see [quota.Name]. A category whose folded name would
// collide with another keeps its own: [Document.Compile] reports it.
func (d Document) Folded() Document {
	f := d
	f.Rules, f.QuietHours = nil, nil
	for _, r := range d.Rules {
		r.Name, r.Channels, r.Categories = quota.Name(r.Name), folded(r.Channels), folded(r.Categories)
		f.Rules = append(f.Rules, r)
	}
	for _, q := range d.QuietHours {
		q.Name, q.Channels, q.Categories = quota.Name(q.Name), folded(q.Channels), folded(q.Categories)
		f.QuietHours = append(f.QuietHours, q)
	}
	f.Categories = foldedKeys(d.Categories)
	for name, c := range f.Categories {
		c.Reserve = foldedKeys(c.Reserve)
		f.Categories[name] = c
	}
	return f
}

func folded(names []string) []string {
	if names == nil {
		return nil
	}
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = quota.Name(name)
	}
	return all
}

// foldedKeys returns a map with folded keys, except for those that would collide.
func foldedKeys[V any](of map[string]V) map[string]V {
	if of == nil {
		return nil
	}
	times := map[string]int{}
	for key := range of {
		times[quota.Name(key)]++
	}
	all := maps.Clone(of)
	for key, v := range of {
		if name := quota.Name(key); times[name] == 1 && name != key {
			delete(all, key)
			all[name] = v
		}
	}
	return all
}
