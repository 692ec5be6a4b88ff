package httpapi

import (
	"fmt"
	"testing"
)

// TestPauses_EverythingAlways checks that a tenant with the maximum number of pauses can still pause everything, once, and nothing else.
func TestPauses_EverythingAlways(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 100 {
		b.send("POST", "/v1/pauses", fmt.Sprintf(`{"scope": "category", "name": "c%d"}`, i)).must(t, 201)
	}
	b.send("POST", "/v1/pauses", `{"scope": "channel", "name": "push"}`).must(t, 409, "too-many-pauses")
	made := b.send("POST", "/v1/pauses", `{"scope": "all"}`).must(t, 201)
	if again := b.send("POST", "/v1/pauses", `{"scope": "all"}`).must(t, 200); again.body["id"] != made.body["id"] {
		t.Errorf("again: %s", again.text)
	}
	b.send("POST", "/v1/pauses", `{"scope": "category", "name": "c7"}`).must(t, 200)
	b.send("POST", "/v1/pauses", `{"scope": "channel", "name": "push"}`).must(t, 409, "too-many-pauses")
	if list := b.send("GET", "/v1/pauses?page_size=200", "").must(t, 200); len(list.at(t, "pauses").([]any)) != 101 {
		t.Errorf("%d are in force", len(list.at(t, "pauses").([]any)))
	}
}
