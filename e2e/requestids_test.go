package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestRequestIDs: from the line of a request to the lines of its push, and back,
// through everything that becomes of pushes.
func TestRequestIDs(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setup(t)
	api, worker := b.StartAPI(), b.Start("worker")
	requests := map[string]string{} // by push
	submit := func(name string, more object) string {
		t.Helper()
		push := object{"recipient": name, "message": object{}}
		for k, v := range more {
			push[k] = v
		}
		a, err := b.ask("POST", "/v1/pushes", push, "X-Request-Id", "request-"+name)
		if err != nil || a.status != 201 {
			t.Fatal(a, err)
		}
		id := a.body["id"].(string)
		requests[id] = "request-" + name
		return id
	}
	logged := func(p *process.Process, message, push string) bool {
		for line := range strings.Lines(p.Log()) {
			if strings.Contains(line, `"msg":"`+message+`"`) && strings.Contains(line, `"push":"`+push+`"`) {
				return true
			}
		}
		return false
	}
	sent, refused, lost := submit("sent", nil), submit("refused", object{"message": object{"do": "404"}}), submit("lost", object{"message": object{"do": "hang"}})
	for _, id := range []string{sent, refused} {
		b.until("attempted", func() bool { return logged(worker, "push attempted", id) })
	}
	b.until("an attempt hangs", func() bool { return len(b.provider.Arrivals()) == 3 })
	testenv.Check(t, worker.Kill())
	late := submit("late", nil)
	b.expire(late)
	next := b.Start("worker")
	b.until("the rest is logged", func() bool {
		return logged(next, "push expired", late) && logged(next, "attempt lost", lost) && logged(next, "push deferred by a rule", lost)
	})

	b.stop(next)
	b.stop(api)
	lines := 0
	for _, p := range []*process.Process{api, worker, next} {
		for line := range strings.Lines(p.Log()) {
			var l struct {
				Msg, Push string
				RequestID string `json:"request_id"`
			}
			if json.Unmarshal([]byte(line), &l) != nil || l.Push == "" {
				continue
			}
			if lines++; l.RequestID != requests[l.Push] {
				t.Errorf("the request of %s is %s; in the log it is %s", l.Push, requests[l.Push], fmt.Sprint(line))
			}
		}
	}
	if lines < 4+5 {
		t.Errorf("only %d lines name a push", lines)
	}
}
