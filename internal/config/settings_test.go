package config

import (
	"regexp"
	"slices"
	"testing"
)

// TestEveryDefaultCanBeRead reads each default by itself, as the reader of the
// documentation would write it.
func TestEveryDefaultCanBeRead(t *testing.T) {
	var read func(prefix string, fields []field)
	read = func(prefix string, fields []field) {
		for _, f := range fields {
			if f.preset != required && f.preset != optional {
				in := &source{}
				f.into(place{in: in, key: prefix + f.name}.standIn(f.preset))
				if in.faults != nil {
					t.Error(in.faults)
				}
			}
			read(prefix+f.name+f.step+".", f.fields)
		}
	}
	var c Config
	read("", c.variables())
	read("", c.fields())
}

func TestSettings(t *testing.T) {
	all := Settings()
	for _, want := range []Setting{
		{"SENDQUOTA_LOG_LEVEL", "info", "debug, info, warn or error"},
		{"channels.NAME.backoff.first", "5s", "the first wait; each further one is twice as long"},
		{"api_limits.per_ip[].limit", "required", "requests per time span; of sliding_log at most 10000"},
	} {
		if !slices.Contains(all, want) {
			t.Errorf("%+v is missing", want)
		}
	}
	shape := regexp.MustCompile(`^([A-Z_]+|[a-z_.\[\]]+(NAME[a-z_.]*)?)$`)
	for _, s := range all {
		if s.Meaning == "" || !shape.MatchString(s.Name) {
			t.Errorf("%+v", s)
		}
	}
}
