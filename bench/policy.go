package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/policy"
)

// measurePolicy compares single submits of two tenants of one installation: one has the default policy, the other one of
// its own with 12 scoped rules, 2 of them over calendars, and quiet hours. All of its rules apply to the pushes, and refuse none.
func measurePolicy(l *lab) {
	s := l.newSendquota(nowhere)
	key := s.Tenant("scoped")
	document, err := json.Marshal(scopedPolicy(time.Now()))
	l.check(err)
	s.exec(`WITH t AS (UPDATE tenants SET policy_version = 1 WHERE name = 'scoped' RETURNING id)
		INSERT INTO policies (tenant_id, version, document) SELECT id, 1, $1 FROM t`, string(document))
	plain, scoped := &counted{load: s.submit(farAhead()), pushes: 1}, &counted{load: s.submit(farAhead()), pushes: 1}
	scoped.requests = []*request{newRequest("POST", "/v1/pushes", key, pushBody(farAhead()))}
	l.report.compare("Submit under 12 scoped rules and quiet hours, against the default policy", l.compare(scoped, plain), "submits/s", 0.8)
	l.report.used("scoped rules", scoped.measured, scoped.cpu)
	l.report.used("default policy", plain.measured, plain.cpu)
	s.proveExact("policy", scoped.accepted+plain.accepted)
}

// scopedPolicy has two quiet hours a day, at other times than the pushes.
func scopedPolicy(now time.Time) policy.Document {
	of := []string{"marketing", "news"}
	rule := func(name string, limit int, r policy.Rule) policy.Rule {
		r.Name, r.Limit, r.Categories = name, &limit, of
		return r
	}
	d := policy.Document{Rules: []policy.Rule{
		rule("day", 9, policy.Rule{Per: "day", Zone: "Europe/Berlin"}),
		rule("week", 30, policy.Rule{Per: "week", Zone: policy.OfRecipient}),
	}}
	for n := range 10 {
		d.Rules = append(d.Rules, rule(fmt.Sprintf("window-%d", n), 1+n, policy.Rule{Window: (time.Minute << n).String()}))
	}
	clock := func(in time.Duration) string { return now.UTC().Add(in).Format("15:04") }
	d.QuietHours = []policy.QuietHours{{Name: "night", From: clock(6 * time.Hour), Until: clock(8 * time.Hour), Zone: policy.OfRecipient, Categories: of}}
	return d
}
