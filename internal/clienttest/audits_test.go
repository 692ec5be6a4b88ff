package clienttest

import "testing"

// TestClient_Audits lists audits with their checks and findings.
func TestClient_Audits(t *testing.T) {
	t.Parallel()
	checks, err := newClient().Records.AuditChecks(t.Context())
	if err != nil || len(checks) == 0 || checks[0].Guarantee == "" || checks[0].Link == "" {
		t.Errorf("%+v, %v", checks, err)
	}
	for audit, err := range newClient().Records.ListAudits(t.Context()) {
		if err != nil || audit.Violations != 0 {
			t.Errorf("%+v, %v", audit, err)
		}
	}
}
