package httpapi

import (
	"net/http"
	"time"

	"github.com/sendquota/sendquota/internal/policy"
)

// shadowView is what shadow rules would have refused.
type shadowView struct {
	Rules []shadowRuleView `json:"rules" doc:"By the rules' names, then by category."`
}

type shadowRuleView struct {
	Rule        string `json:"rule"`
	Category    string `json:"category" doc:"The category of the pushes; empty: none."`
	WouldRefuse int    `json:"would_refuse" doc:"Accepted pushes that the rule would have refused."`
}

// shadowParams is of which time the counts are asked for.
type shadowParams struct{ from, until time.Time }

var shadowFields = table[shadowParams]{fields: []field[shadowParams]{
	row("from", optional, moment(func(p *shadowParams, t time.Time) { p.from = t }), "Only pushes submitted in this minute or later. Default: a day before until.", timeExample),
	row("until", optional, moment(func(p *shadowParams, t time.Time) { p.until = t }), "Only pushes submitted before this minute. Default: now.", timeExample),
}}

func (h *policies) shadow(c *call) error {
	var p shadowParams
	shadowFields.readQuery(c.r, &p, &c.bad)
	if p.until.IsZero() {
		p.until = c.now().UTC().Add(time.Minute)
	}
	if p.from.IsZero() {
		p.from = p.until.Add(-24 * time.Hour)
	}
	if spanRead(&c.bad) && !p.from.Before(p.until) {
		badParameter(&c.bad, "until", "must be after from, "+stamp(p.from), stamp(p.until))
	}
	if err := c.bad.err(); err != nil {
		return err
	}
	counts, err := h.svc.Shadow(c.r.Context(), c.caller.Tenant, p.from, p.until)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, shadowView{viewsOf(counts, func(s policy.ShadowCount) shadowRuleView {
		return shadowRuleView{Rule: s.Rule, Category: s.Category, WouldRefuse: s.WouldRefuse}
	})})
}
