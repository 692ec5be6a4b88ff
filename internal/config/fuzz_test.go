package config

import (
	"strings"
	"testing"
	"time"
)

// FuzzYAML holds that any file at all either has errors, or gives a Config
// that keeps what its doc comments promise.
func FuzzYAML(f *testing.F) {
	for _, seed := range []string{"", whole, everyType, "policy: {rules: []}", "channels: {a: {type: log}}", "? [a]\n: &x *x\n", "<<: *x", "- !!str", "a: |\n  b", "{", "%YAML 1.2\n---\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, errs := read(text, "PATH_KEY=k", "PUSH_SECRET=0123456789abcdef")
		for _, e := range errs {
			if e.Line < 1 || e.Message == "" || strings.Contains(e.Error(), "\n") {
				t.Errorf("an error without a place or a message on one line: %+v", e)
			}
		}
		if errs == nil {
			validate(t, c)
		}
	})
}

func validate(t *testing.T, c Config) {
	names := map[string]bool{}
	for _, r := range c.Policy.Rules {
		if names[r.Name] || r.Name == "" || r.Limit == nil || *r.Limit < 0 || (r.Window == "") == (r.Per == "") {
			t.Errorf("rule %+v", r)
		}
		names[r.Name] = true
	}
	for _, ch := range c.Channels {
		if ch.Name == "" || (ch.Type == Webhook) == (ch.Webhook.URL == "") || ch.Timeout <= 0 || ch.Timeout > c.Delivery.Lease/2 ||
			ch.MaxAttempts < 1 || ch.Backoff.First <= 0 || ch.Backoff.Max < ch.Backoff.First || (ch.Throughput.Rate == 0) != (ch.Throughput.Burst == 0) ||
			ch.Throughput.Rate > 0 && ch.Throughput.Per/time.Duration(ch.Throughput.Rate) < time.Microsecond {
			t.Errorf("channel %+v", ch)
		}
	}
	d := c.Delivery
	if len(c.Channels) == 0 || d.Concurrency < 1 || d.DefaultTTL <= 0 || d.MaxHorizon <= 0 || d.Queues < 1 || d.Lanes < 1 || d.Lanes&(d.Lanes-1) != 0 || d.Horizon <= 0 {
		t.Errorf("config %+v", c)
	}
}
