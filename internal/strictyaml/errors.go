package strictyaml

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sendquota/sendquota/internal/invalid"
)

// Error is one error in the settings. Its field is a key, such as policy.rules[1].limit, or the name of a variable. Its value
// is the written one, strings in quotes, and empty if it is absent or secret.
type Error struct {
	File string // path; empty for the environment
	Line int    // in the file, from 1; 0: unknown
	invalid.FieldError
}

// Errors is the list of all errors in the settings.
type Errors []Error

// Error gives each error a line of its own, as in
//
//	sendquota.yaml:7: policy.rules[1].limit: -1: must be a whole number from 0 to 100000
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Concern reports whether a setting, or one within it, has an error.
func (es Errors) Concern(key string) bool {
	return slices.ContainsFunc(es, func(e Error) bool {
		rest, within := strings.CutPrefix(e.Field, key)
		return within && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// Error returns the error on one line, without absent parts.
func (e Error) Error() string {
	where := e.File
	if e.Line > 0 {
		where += ":" + strconv.Itoa(e.Line)
	}
	if where != "" {
		where += ": "
	}
	return where + e.FieldError.Error()
}

// suggest lists the allowed names for an error about an unknown one, with the most similar name.
func suggest(name string, allowed []string) string {
	return "allowed: " + strings.Join(allowed, ", ") + didYouMean(name, allowed)
}

// didYouMean asks for the most similar of the allowed names; "" if none is similar.
func didYouMean(name string, allowed []string) string {
	if near := invalid.Nearest(name, allowed); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}
