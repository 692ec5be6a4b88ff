package console

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestFailures_RetryGroup explains a group of failures, previews a retry without booking, and retries each push of the group once.
func TestFailures_RetryGroup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.get("/console/failures").has(t, 200, "No failures in this period")
	for i := range 3 {
		b.failed(fmt.Sprint("user-", i), "unregistered: not a valid telephone number")
	}
	b.failed("user-9", "the provider answered 404")
	path := "/console/failures?until=" + frame.RFC3339(b.submit("last", 3600e9).SendAt)
	page := b.get(path)
	page.has(t, 200, "push: unregistered: not a valid telephone number", "3", "no longer knows this address", "push: the provider answered 404", "/v1/failures?", "Preview a retry of all")
	b.get("/console/pushes?status=failed&channel=push&reason=the+provider+answered+404").has(t, 200, "user-9")
	b.submit("user-1", 5e9) // where its retry would be
	fields := []string{"status", "failed", "channel", "push", "reason", "unregistered: not a valid telephone number", "do"}
	b.post("/console/failures/retry", append(fields, "")...).has(t, 200, "3 checked", "Nothing was scheduled yet", "Would be accepted</dt><dd>2", "1: limit reached: per-minute")
	if again := b.post("/console/failures/retry", append(fields, "")...); strings.Contains(again.Body, "Retried before") {
		t.Error("the preview has booked something")
	}
	b.post("/console/failures/retry", append(fields, "retry")...).has(t, 200, "Accepted</dt><dd>2", "1: limit reached: per-minute", "Expires", "1 d after the send time", "Back to failures")
	b.get(path).has(t, 200, "2 of them were retried", "No retry has ended this way so far")
	b.post("/console/failures/retry", append(fields, "retry")...).has(t, 200, "Accepted</dt><dd>0", "2, left unchanged")
	b.who.Caller.Scopes = []string{push.ScopeRead, push.ScopeRecordsRead}
	if page := b.get(path); !strings.Contains(page.Body, "no longer knows") || strings.Contains(page.Body, "retry of all") {
		t.Error("a viewer is offered a retry")
	}
	b.post("/console/failures/retry", append(fields, "retry")...).has(t, 403, "cannot do this")
}

// failedAll makes some pushes, and has them all fail.
func (b *bundle) failedAll(pushes int) {
	b.t.Helper()
	var batch client.NewBatch
	for i := range pushes {
		batch.Pushes = append(batch.Pushes, client.NewPush{Recipient: fmt.Sprint("user-", i), Message: client.Message{}})
	}
	if made, err := b.api.Pushes.SubmitBatch(b.t.Context(), "", batch); err != nil || made.Accepted != int64(pushes) {
		b.t.Fatalf("%d, %v", made.Accepted, err)
	}
	b.failScheduled()
}

func (b *bundle) failScheduled() {
	b.t.Helper()
	testenv.Exec(b.t, b.url, `DELETE FROM live WHERE push_id IN (SELECT id FROM pushes WHERE tenant_id = $1)`, [16]byte(b.tenant))
	testenv.Exec(b.t, b.url, `UPDATE pushes SET status = 'failed', last_error = 'gone', freed = true WHERE tenant_id = $1 AND status = 'scheduled'`, [16]byte(b.tenant))
}

// stepFields returns the fields of the form for the next step; nil if there is none.
func stepFields(page string) (fields []string) {
	_, form, _ := strings.Cut(page, `id="steps"`)
	form, _, _ = strings.Cut(form, "</form>")
	for _, field := range regexp.MustCompile(`name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(form, -1) {
		fields = append(fields, field[1], field[2])
	}
	return fields
}

// TestFailures_Steps: more than one step are counted together.
func TestFailures_Steps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.failedAll(200 + 1)
	page := b.post("/console/failures/retry", "status", "failed", "reason", "gone")
	page.has(t, 200, "200 checked so far", ">Continue<")
	next := b.post("/console/failures/retry", stepFields(page.Body)...)
	next.has(t, 200, "201 checked.", "Would be accepted")
	if stepFields(next.Body) != nil {
		t.Error("there is a step after the last one")
	}
}

// TestFailures_Until: retries of a group live until the time that is chosen, in each step.
func TestFailures_Until(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.failedAll(200 + 1)
	group := []string{"status", "failed", "reason", "gone", "on_conflict", "defer", "expires_at"}
	b.post("/console/failures/retry", append(group, "2020-01-01T09:00", "do", "retry")...).has(t, 422, "fault-expires_at", "must be in the future", "0 checked", `value="2020-01-01T09:00"`)
	b.post("/console/failures/retry", append(group, "soon")...).has(t, 422, "fault-expires_at")
	until := time.Now().Add(5 * time.Hour).Truncate(time.Second).UTC()
	page := b.post("/console/failures/retry?tz=utc", append(group, until.Format("2006-01-02T15:04:05"), "do", "retry")...)
	page.has(t, 200, "200 checked so far")
	page = b.post("/console/failures/retry?tz=Asia%2FTokyo", stepFields(page.Body)...)
	page.has(t, 200, "201 checked.", "Accepted</dt><dd>201")
	if n := testenv.Query[int](t, b.url, `SELECT count(*) FROM pushes WHERE tenant_id = $1 AND retry_of IS NOT NULL AND expires_at = $2`, [16]byte(b.tenant), until); n != 200+1 {
		t.Errorf("%d retries live until then", n)
	}
}

// TestFailures_RetriesFail: retries that fail while the others are still on their way are not retried once more.
func TestFailures_RetriesFail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.failedAll(200 + 1)
	page := b.post("/console/failures/retry", "status", "failed", "reason", "gone", "do", "retry", "on_conflict", "defer")
	page.has(t, 200, "200 checked so far")
	for range 5 {
		b.failScheduled()
		fields := stepFields(page.Body)
		if fields == nil {
			break
		}
		page = b.post("/console/failures/retry", fields...)
	}
	page.has(t, 200, "201 checked.", "Accepted</dt><dd>201", "Back to failures")
	if n := testenv.Query[int](t, b.url, `SELECT count(*) FROM pushes WHERE tenant_id = $1`, [16]byte(b.tenant)); n != 2*(200+1) {
		t.Errorf("there are %d pushes", n)
	}
}
