package policies

import (
	"net/http"
	"time"

	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/rest"
)

// shadowView counts the pushes that shadow rules would have refused.
type shadowView struct {
	Rules []shadowRuleView `json:"rules" doc:"By the rules' names, then by category."`
}

type shadowRuleView struct {
	Rule        string `json:"rule"`
	Category    string `json:"category" doc:"The category of the pushes; empty: none."`
	WouldRefuse int    `json:"would_refuse" doc:"Accepted pushes that the rule would have refused."`
}

// shadowParams is the time of the counts.
type shadowParams struct{ from, until time.Time }

var shadowFields = rest.Table[shadowParams]{Fields: []rest.Field[shadowParams]{
	rest.Row("from", rest.Optional, rest.Moment(func(p *shadowParams, t time.Time) { p.from = t }), "Only pushes submitted in this minute or later. Default: a day before until.", rest.TimeExample),
	rest.Row("until", rest.Optional, rest.Moment(func(p *shadowParams, t time.Time) { p.until = t }), "Only pushes submitted before this minute. Default: now.", rest.TimeExample),
}}

func (h *policies) shadow(c *rest.Call) error {
	var p shadowParams
	shadowFields.ReadQuery(c.Request, &p, &c.Errors)
	if p.until.IsZero() {
		p.until = c.Now().UTC().Add(time.Minute)
	}
	if p.from.IsZero() {
		p.from = p.until.Add(-24 * time.Hour)
	}
	if rest.SpanRead(&c.Errors) && !p.from.Before(p.until) {
		rest.BadParameter(&c.Errors, "until", "must be after from, "+rest.Stamp(p.from), rest.Stamp(p.until))
	}
	if err := c.Errors.Err(); err != nil {
		return err
	}
	counts, err := h.svc.Shadow(c.Request.Context(), c.Caller.Tenant, p.from, p.until)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, shadowView{rest.ViewsOf(counts, func(s policy.ShadowCount) shadowRuleView {
		return shadowRuleView{Rule: s.Rule, Category: s.Category, WouldRefuse: s.WouldRefuse}
	})})
}
