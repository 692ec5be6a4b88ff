package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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

// occurrencePoints are those that a worker comes to around an occurrence.
var occurrencePoints = []failpoint.Point{
	failpoint.OccurrenceLocked, failpoint.OccurrenceWritten, failpoint.OccurrenceBegun,
	failpoint.BookLocked, failpoint.BookCommitting, failpoint.BookCommitted, failpoint.SubmitReserved, failpoint.SubmitTold, failpoint.SubmitArmed,
	failpoint.OccurrenceSubmitted, failpoint.OccurrenceRecorded, failpoint.OccurrenceDone,
}

// TestSchedules_Killed kills three workers at each point around an occurrence, one after the other as they come to it. Each
// occurrence happens once: it has one run, and that one push.
func TestSchedules_Killed(t *testing.T) {
	t.Parallel()
	for _, point := range occurrencePoints {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			worker, err := failingWorker()
			testenv.Check(t, err)
			// One becomes due every second: so every worker comes to the point.
			testenv.Exec(t, b.Database, `
				INSERT INTO schedules (id, tenant_id, name, cron, time_zone, push, catch_up, paused, began_at, done_at, next_at, created_at, updated_at)
				SELECT gen_random_uuid(), t.id, '', '@every 1m', 'UTC', json_build_object('recipient', 'r-' || n, 'message', '{}'::json), 'skip', false,
					s.began, s.began, s.began + interval '1 minute', s.began, s.began
				FROM tenants t CROSS JOIN generate_series(1, 8) n
				CROSS JOIN LATERAL (SELECT date_trunc('second', clock_timestamp() - interval '59 seconds') + n * interval '1 second' AS began) s
				WHERE t.name = 'acme'`)
			var doomed []*process.Process
			for range 3 {
				doomed = append(doomed, b.StartCommand(process.Command{Name: "worker", Path: worker, Env: []string{"FAILPOINT=kill@" + string(point) + ":1"}}))
			}
			for _, w := range doomed {
				select {
				case <-w.Exited():
				case <-time.After(2 * time.Minute):
					t.Fatal("a worker did not come to the point")
				}
			}
			for range 3 {
				b.Start("worker")
			}
			// What is there twice does not go away.
			b.until("each occurrence has happened once", func() bool {
				return testenv.Query[bool](t, b.Database, `
					SELECT bool_and(due > 0 AND runs = due AND submitted = due AND pushes = due)
					FROM (
						SELECT round(extract(epoch FROM s.done_at - s.began_at) / 60) AS due,
							(SELECT count(*) FROM schedule_runs r WHERE r.schedule_id = s.id) AS runs,
							(SELECT count(*) FROM schedule_runs r JOIN pushes p ON p.id = r.push_id AND p.send_at = r.at AND p.recipient = s.push->>'recipient'
								WHERE r.schedule_id = s.id AND r.outcome = 'submitted') AS submitted,
							(SELECT count(*) FROM pushes p WHERE p.recipient = s.push->>'recipient') AS pushes
						FROM schedules s
					) s`)
			})
			b.wantAudited()
		})
	}
}

// TestSchedules_Tool: the tool lists what there is, and neither recipients nor messages.
func TestSchedules_Tool(t *testing.T) {
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
