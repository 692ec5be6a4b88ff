package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// poolerConnections is fewer than the programs would have without a pooler.
const poolerConnections = 4

// TestPrograms_ThroughPgBouncer: the API and two workers share four connections to Postgres through PgBouncer in
// transaction mode. Every push leaves once and not early, also after PgBouncer was killed. The operator's tool works,
// and says that migrations need another way.
func TestPrograms_ThroughPgBouncer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pooler := testenv.PgBouncer(t, b.Database, poolerConnections)
	b.Env = append(b.Env, "DATABASE_URL="+pooler.URL)
	if o := b.Exec("sendquota", "migrate"); o.Status != 1 || !strings.Contains(o.Err, "leads through a pooler") {
		t.Errorf("sendquota migrate: %+v", o)
	}
	other := b.tenant("other")
	b.StartAPI()
	b.Start("worker")
	b.Start("worker")

	b.wantAllLeave("before", 100)
	other.wantAllLeave("before", 100)
	testenv.Check(t, pooler.Kill())
	testenv.Check(t, pooler.Restart(t.Context()))
	b.until("the API is ready again", func() bool {
		status, answer := b.call(http.MethodGet, "/readyz", nil)
		return status == http.StatusOK && answer["status"] == "ready"
	})
	b.wantAllLeave("after", 100)

	once(t, b.provider.Arrivals(), 300)
	b.wantAudited()
	connections := testenv.Query[int64](t, b.Database, `
		SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'sendquota'`)
	if connections == 0 || connections > poolerConnections {
		t.Errorf("%d connections to Postgres", connections)
	}
}

// wantAllLeave submits n pushes for one moment, and waits until all have left, none of them early.
func (b *bundle) wantAllLeave(prefix string, n int) {
	b.t.Helper()
	due := time.Now().UTC().Add(2 * time.Second).Truncate(time.Second)
	before := len(b.provider.Arrivals())
	var pushes []object
	for i := range n {
		pushes = append(pushes, object{"recipient": fmt.Sprint(prefix, i), "send_at": due.Format(time.RFC3339), "message": object{"title": "hello"}})
	}
	if status, a := b.call(http.MethodPost, "/v1/pushes/batch", object{"pushes": pushes}); status != http.StatusOK || a["accepted"] != float64(n) {
		b.t.Fatalf("%d %v", status, a)
	}
	b.until("all have left", func() bool { return len(b.provider.Arrivals()) == before+n })
	for _, one := range b.provider.Arrivals()[before:] {
		if one.At.Before(due) {
			b.t.Errorf("a push left %s before its second", due.Sub(one.At))
		}
	}
}
