package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// resolver writes a document with what its references refer to.
type resolver struct {
	doc    map[string]any
	within []string // the references around what is being written
}

// write returns a value without references, and with one form for what has several.
func (r *resolver) write(v any) (any, error) {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i, one := range v {
			var err error
			if list[i], err = r.write(one); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(v))
		if ref, ok := v["$ref"].(string); ok {
			to, err := r.refer(ref)
			if err != nil {
				return nil, err
			}
			maps.Copy(object, to)
		}
		for name, value := range v {
			if name == "$ref" {
				continue
			}
			plain, err := r.write(value)
			if err != nil {
				return nil, err
			}
			object[name] = plain // what stands beside a reference counts
		}
		return sorted(orNull(object)), nil
	default:
		return v, nil
	}
}

// refer returns what a reference leads to. A schema that contains itself keeps its reference inside.
func (r *resolver) refer(ref string) (map[string]any, error) {
	if slices.Contains(r.within, ref) {
		return map[string]any{"$ref": ref}, nil
	}
	path, local := strings.CutPrefix(ref, "#/")
	var to any = r.doc
	for part := range strings.SplitSeq(path, "/") {
		object, _ := to.(map[string]any)
		to = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	if to == nil || !local {
		return nil, fmt.Errorf("%s leads nowhere", ref)
	}
	r.within = append(r.within, ref)
	plain, err := r.write(to)
	r.within = r.within[:len(r.within)-1]
	if err != nil {
		return nil, err
	}
	object, ok := plain.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s leads to %s", ref, short(plain))
	}
	return object, nil
}

// orNull writes "anyOf: [a schema with a type, null]" as that schema with the type null besides.
func orNull(object map[string]any) map[string]any {
	either, _ := object["anyOf"].([]any)
	if len(either) != 2 {
		return object
	}
	for i, one := range either {
		null, _ := one.(map[string]any)
		schema, _ := either[1-i].(map[string]any)
		if len(null) != 1 || null["type"] != "null" || schema["type"] == nil || schema["enum"] != nil || schema["const"] != nil {
			continue
		}
		merged := maps.Clone(schema)
		types, many := schema["type"].([]any)
		if !many {
			types = []any{schema["type"]}
		}
		merged["type"] = append(slices.Clone(types), "null")
		for name, value := range object {
			if name != "anyOf" {
				merged[name] = value
			}
		}
		return merged
	}
	return object
}

// sorted orders the lists whose order means nothing.
func sorted(object map[string]any) map[string]any {
	for _, name := range []string{"type", "required", "enum", "parameters"} {
		if list, ok := object[name].([]any); ok {
			list = slices.Clone(list)
			slices.SortFunc(list, func(a, b any) int { return strings.Compare(key(a), key(b)) })
			object[name] = list
		}
	}
	return object
}

// key orders parameters by where they stand and their names, and everything else by its text.
func key(v any) string {
	if p, ok := v.(map[string]any); ok && p["name"] != nil {
		return fmt.Sprint(p["in"], " ", p["name"])
	}
	return fmt.Sprint(v)
}
