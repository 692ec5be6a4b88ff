package frame

import (
	"testing"

	"github.com/sendquota/sendquota/client"
)

// TestFaults_SameField: a field shows both of its faults.
func TestFaults_SameField(t *testing.T) {
	t.Parallel()
	got := byField(new(Page), []client.Fault{{Location: "body.name", Message: "is too long"}, {Location: "body.to", Message: "is missing"}, {Location: "body.name", Message: "is taken"}})
	if got["name"] != "is too long; is taken" || got["to"] != "is missing" || len(got) != 2 {
		t.Errorf("%q", got)
	}
}
