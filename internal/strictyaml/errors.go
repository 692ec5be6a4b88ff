package strictyaml

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sendquota/sendquota/internal/invalid"
)

// Error is one thing that is wrong with the settings. Its field is a key, such as policy.rules[1].limit, or the name of a
// variable. Its value is as written, strings in quotes, and empty where it is absent or secret.
type Error struct {
	File string // path; empty for the environment
	Line int    // in the file, from 1; 0 where there is none
	invalid.FieldError
}

// Errors is everything that is wrong with the settings.
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

// Concern reports whether something is wrong with a setting, or with one within it.
func (es Errors) Concern(key string) bool {
	return slices.ContainsFunc(es, func(e Error) bool {
		rest, within := strings.CutPrefix(e.Field, key)
		return within && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// Error is the error on one line; what is absent is left out.
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
