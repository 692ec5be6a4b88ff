package limits

import (
	"slices"
	"testing"

	"github.com/sendquota/sendquota/internal/rest"
)

// FuzzTake: every accepted take can be decided, and every other one has errors with messages.
func FuzzTake(f *testing.F) {
	for _, seed := range []string{
		string(exampleTake), `{}`, `{"key":"a","limits":[{}]}`, `{"key":"a","limits":[1,{"per":[]}],"cost":1e9}`,
		`{"key":"a","limits":[{"algorithm":"sliding_window","limit":1,"per":"1.5s","precision":"1m"}],"limits":[]}`, `{"limits":null,"key":null,"cost":null,"dry_run":null}`,
		`{"limits":[{"key":"{a}:1","algorithm":"fixed_window","limit":1,"per":"1s","aligned":true},{"key":"{a}:2","algorithm":"token_bucket","limit":1,"per":"1s","refill":"interval"}]}`,
		`{"key":"a","limits":[{"algorithm":"leaky_bucket","limit":1000000000,"per":"8760h","burst":1000000000}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var (
			got  takeForm
			errs rest.FieldErrors
		)
		if rest.ReadWhole(body, &rest.FieldErrors{}, func(r *rest.Reader) { takeFields.Read(r, &got, &errs) }) != nil {
			return
		}
		for _, one := range errs.List {
			if one.Message == "" {
				t.Errorf("a fault that says nothing: %+v", one)
			}
		}
		if len(errs.List) > 0 {
			return
		}
		if got.key == "" && slices.Contains(got.own, false) || got.cost < 1 || got.cost > maxCost || len(got.rules) < 1 || len(got.rules) > maxLimits {
			t.Errorf("accepted: %+v", got)
		}
		for i, rule := range got.rules {
			if faults := rule.Limit.Validate(); len(faults) > 0 || rule.Subject == "" || rule.Subject != got.key && !got.own[i] || rule.Tag == "" {
				t.Errorf("accepted as limit %d: %+v, %v", i, rule, faults)
			}
		}
	})
}
