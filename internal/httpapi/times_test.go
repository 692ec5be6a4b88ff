package httpapi

import (
	"testing"

	"github.com/sendquota/sendquota/internal/rest"
)

// TestSpans_WithOtherErrors: that a stretch of time ends before it begins is said beside whatever else is wrong, and not if an end cannot be
// read.
func TestSpans_WithOtherErrors(t *testing.T) {
	b := setup(t)
	const backwards = "from=2026-12-02T00:00:00Z&until=2026-12-01T00:00:00Z"
	for path, other := range map[string]string{
		"/v1/failures": "campaign=x", "/v1/stats": "group_by=x", "/v1/stats/ahead": "campaign=x", "/v1/recipients/anna/timeline": "x=x",
		"/v1/recipients/anna/availability": "without=x", "/v1/recipients/anna/slots": "x=x", "/v1/policy/shadow": "x=x", "/v1/campaigns/" + rest.ExampleID + "/capacity": "sample=x",
	} {
		if r := b.send("GET", path+"?"+backwards+"&"+other, "").must(t, 422, "invalid-request"); len(r.at(t, "errors").([]any)) != 2 {
			t.Errorf("%s: %s", path, r.text)
		}
		if r := b.send("GET", path+"?from=x&until=2026-12-01T00:00:00Z&"+other, "").must(t, 422, "invalid-request"); len(r.at(t, "errors").([]any)) != 2 {
			t.Errorf("%s: %s", path, r.text)
		}
	}
}
