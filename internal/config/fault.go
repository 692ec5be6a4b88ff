package config

import (
	"slices"
	"strconv"
	"strings"
)

// Fault is one thing wrong with the settings.
type Fault struct {
	File    string // path of the YAML file; empty for the environment
	Line    int    // in the file, from 1; 0 where there is none
	Key     string // such as policy.rules[1].limit, or the name of a variable
	Value   string // as written, strings in quotes; empty where a value is absent or secret
	Message string // what is allowed
}

// Faults is every fault of the settings: first those of the environment, then
// those of the file by line. It is the error that Load returns.
type Faults []Fault

// Error gives each fault a line of its own, as in
//
//	sendquota.yaml:7: policy.rules[1].limit: -1: must be a whole number from 0 to 100000
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Concern reports whether a setting, or one within it, is at fault.
func (fs Faults) Concern(key string) bool {
	return slices.ContainsFunc(fs, func(f Fault) bool {
		rest, within := strings.CutPrefix(f.Key, key)
		return within && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// String is the fault on one line; what is absent is left out.
func (f Fault) String() string {
	where := f.File
	if f.Line > 0 {
		where += ":" + strconv.Itoa(f.Line)
	}
	var parts []string
	for _, part := range []string{where, f.Key, f.Value, f.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}
