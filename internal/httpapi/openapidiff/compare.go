package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// compare returns a line for each place where the documents differ, in order.
func compare(before, after map[string]any) ([]string, error) {
	var docs [2]map[string]any
	var names [2][]string
	for i, doc := range []map[string]any{before, after} {
		r := resolver{doc: doc}
		plain, err := r.write(doc)
		if err != nil {
			return nil, err
		}
		docs[i], _ = plain.(map[string]any)
		components, _ := docs[i]["components"].(map[string]any)
		for kind, all := range components {
			if kind == "securitySchemes" {
				continue // nothing refers to them by $ref
			}
			all, _ := all.(map[string]any)
			for name := range all {
				names[i] = append(names[i], "/components/"+kind+"/"+name)
			}
			delete(components, kind)
		}
	}
	var found []string
	slices.Sort(names[0])
	for _, name := range names[0] {
		if !slices.Contains(names[1], name) {
			found = append(found, name+": gone")
		}
	}
	return differ(found, "", docs[0], docs[1]), nil
}

// differ adds the differences at a place.
func differ(found []string, place string, before, after any) []string {
	was, object := before.(map[string]any)
	is, still := after.(map[string]any)
	if object && still {
		for _, name := range slices.Sorted(maps.Keys(was)) {
			value, has := is[name]
			if !has {
				found = append(found, place+"/"+name+": gone")
				continue
			}
			found = differ(found, place+"/"+name, was[name], value)
		}
		for _, name := range slices.Sorted(maps.Keys(is)) {
			if _, had := was[name]; !had {
				found = append(found, place+"/"+name+": new")
			}
		}
		return found
	}
	list, array := before.([]any)
	others, still := after.([]any)
	if array && still && len(list) == len(others) {
		for i := range list {
			found = differ(found, fmt.Sprintf("%s/%d", place, i), list[i], others[i])
		}
		return found
	}
	if !reflect.DeepEqual(before, after) {
		found = append(found, fmt.Sprintf("%s: %s, before %s", place, short(after), short(before)))
	}
	return found
}

// short is a value as JSON, of a length that can be read.
func short(v any) string {
	text, _ := json.Marshal(v)
	if len(text) > 100 {
		return string(text[:100]) + "…"
	}
	return string(text)
}
