package httpapi

import (
	"testing"
)

// TestPauses_Warning checks that a pause of a category that neither the policy nor a push has is made, with a warning that has the nearest
// name, and that one of a known category has none: of the policy, of its rules, or of a push, with any capital letters.
func TestPauses_Warning(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, key := b.newTenant("warned", "pauses:write", "policy:write", "pushes:write")
	as := []string{"Authorization", "Bearer " + key}
	b.send("PUT", "/v1/policy", `{"rules": [{"name": "a", "limit": 100, "window": "1m", "categories": ["offers"]}], "categories": {"codes": {"level": "urgent"}}}`, as...).must(t, 200)
	b.send("POST", "/v1/pushes", `{"recipient": "anna", "channel": "push", "category": "news", "message": {}}`, as...).must(t, 201)
	for name, want := range map[string]any{
		"codes": nil, "Codes": nil, "offers": nil, "news": nil,
		"nwes":      "no policy and no push has the category nwes so far; the nearest name is news",
		"code":      "no policy and no push has the category code so far; the nearest name is codes",
		"reminders": "no policy and no push has the category reminders so far",
	} {
		for _, status := range []int{201, 200} {
			if name == "Codes" && status == 201 {
				b.send("POST", "/v1/pauses", `{"scope": "category", "name": "codes"}`, as...)
				continue // the same category
			}
			got := b.send("POST", "/v1/pauses", `{"scope": "category", "name": "`+name+`"}`, as...)
			if got.status != status && name != "codes" || got.body["warning"] != want {
				t.Errorf("%s: %d %s, want %d and the warning %v", name, got.status, got.text, status, want)
			}
		}
	}
	if got := b.send("POST", "/v1/pauses", `{"scope": "all"}`, as...).must(t, 201); got.body["warning"] != nil {
		t.Errorf("everything: %s", got.text)
	}
}
