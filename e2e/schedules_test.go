package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// failingWorker builds the worker with failpoints once, beside the other programs, and returns its path.
var failingWorker = sync.OnceValues(func() (string, error) {
	dir, err := build()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "failpoint")
	return filepath.Join(dir, "worker"), testenv.Build(context.Background(), dir, []string{"-tags", "failpoint"}, "worker")
})

// occurrencePoints are the failpoints that a worker passes around an occurrence.
var occurrencePoints = []failpoint.Point{
	failpoint.OccurrenceLocked, failpoint.OccurrenceWritten, failpoint.OccurrenceBegun,
	failpoint.BookLocked, failpoint.BookCommitting, failpoint.BookCommitted, failpoint.SubmitReserved, failpoint.SubmitCached, failpoint.SubmitArmed,
	failpoint.OccurrenceSubmitted, failpoint.OccurrenceRecorded, failpoint.OccurrenceDone,
}

// TestSchedules_Killed kills three workers at each point around an occurrence, one after the other as they come to it. Each occurrence happens once: it has one run, and that one push.
func TestSchedules_Killed(t *testing.T) {
	allOnly(t)
	t.Parallel()
	for points := range slices.Chunk(occurrencePoints, 6) {
		t.Run(string(points[0]), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.killAt(points)
			b.wantOccurrencesOnce()
			b.wantAudited()
		})
	}
}

// killAt kills workers at each of these points.
func (b *bundle) killAt(points []failpoint.Point) {
	b.t.Helper()
	worker, err := failingWorker()
	testenv.Check(b.t, err)
	for _, point := range points {
		for n := range 3 {
			b.schedule(fmt.Sprint(point, n))
			w := b.StartCommand(process.Command{Name: "worker", Path: worker, Env: []string{"FAILPOINT=kill@" + string(point) + ":1"}})
			b.until("a worker comes to the point "+string(point), func() bool {
				select {
				case <-w.Exited():
					return true
				default:
					return false
				}
			})
		}
	}
}

// wantOccurrencesOnce waits until workers have had each occurrence of the schedules happen.
func (b *bundle) wantOccurrencesOnce() {
	b.t.Helper()
	for range 3 {
		b.Start("worker")
	}
	// A duplicate would not go away.
	b.until("each occurrence has happened once", func() bool {
		return testenv.Query[bool](b.t, b.Database, `
			SELECT bool_and(due > 0 AND runs = due AND submitted = due AND pushes = due)
			FROM (
				SELECT round(extract(epoch FROM s.done_at - s.began_at) / 3600) AS due,
					(SELECT count(*) FROM schedule_runs r WHERE r.schedule_id = s.id) AS runs,
					(SELECT count(*) FROM schedule_runs r JOIN pushes p ON p.id = r.push_id AND (p.send_at = r.at OR p.send_at >= r.at + interval '30 seconds') AND p.recipient = s.push->>'recipient'
						WHERE r.schedule_id = s.id AND r.outcome = 'submitted') AS submitted,
					(SELECT count(*) FROM pushes p WHERE p.recipient = s.push->>'recipient') AS pushes
				FROM schedules s
			) s`)
	})
}

// schedule makes a schedule of every hour, which is due now for the first time.
func (b *bundle) schedule(recipient string) {
	b.t.Helper()
	testenv.Exec(b.t, b.Database, `
		INSERT INTO schedules (id, tenant_id, name, cron, time_zone, push, catch_up, paused, began_at, done_at, next_at, created_at, updated_at)
		SELECT gen_random_uuid(), t.id, '', '@every 1h', 'UTC', json_build_object('recipient', $1::text, 'message', '{}'::json), 'skip', false,
			s.began, s.began, s.began + interval '1 hour', s.began, s.began
		FROM tenants t CROSS JOIN LATERAL (SELECT date_trunc('second', clock_timestamp() - interval '1 hour') AS began) s
		WHERE t.name = 'acme'`, recipient)
}

// TestSchedules_Tool: the tool lists what there is, and neither recipients nor messages.
func TestSchedules_Tool(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setup(t)
	b.StartAPI()
	b.Tenant("other")
	for _, more := range []object{{"name": "Monday digest", "cron": "0 9 * * MON", "time_zone": "Europe/Berlin"}, {"cron": "@daily", "paused": true}} {
		more["push"] = object{"recipient": "anna", "message": object{"title": "secret title"}}
		if status, answer := b.call("POST", "/v1/schedules", more); status != http.StatusCreated {
			t.Fatal(status, answer)
		}
	}
	lines := strings.Split(strings.TrimSpace(b.Tool("schedules", "list")), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "ID ") || !strings.Contains(lines[1]+lines[2], "Monday digest") {
		t.Errorf("%q", lines)
	}
	var list struct{ Schedules []object }
	testenv.Check(t, json.Unmarshal([]byte(b.Tool("schedules", "list", "--tenant", "acme", "--json")), &list))
	if len(list.Schedules) != 2 || list.Schedules[0]["tenant"] != "acme" || list.Schedules[0]["time_zone"] != "Europe/Berlin" || list.Schedules[0]["next_at"] == nil ||
		list.Schedules[1]["status"] != "paused" || list.Schedules[1]["next_at"] != nil {
		t.Errorf("%v", list)
	}
	if out := b.Tool("schedules", "list", "--json", "--tenant", "other"); out != `{"schedules":[]}`+"\n" {
		t.Errorf("%s", out)
	}
	if out := b.Tool("schedules", "list", "--json"); strings.Contains(out, "anna") || strings.Contains(out, "secret") {
		t.Errorf("%s", out)
	}
	if o := b.Exec("sendquota", "schedules", "list", "--tenant", "nobody"); o.Status == 0 || !strings.Contains(o.Err, "nobody") {
		t.Errorf("%+v", o)
	}
}
