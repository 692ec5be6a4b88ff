package e2e

import (
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// rescheduled is a recipient whose only push is moved or canceled while Redis is
// in trouble.
type rescheduled struct {
	name, push string
	at, to     time.Time
}

// reschedules are changes through one API while Redis is in trouble. Afterwards the
// other API must answer by them.
type reschedules struct {
	w, other *bundle
	all      []*rescheduled
}

func newReschedules(name string, b, other *bundle) *reschedules {
	m := &reschedules{w: b, other: other}
	at := time.Now().UTC().Add(2 * time.Hour).Truncate(time.Minute)
	for i := range 12 {
		m.all = append(m.all, &rescheduled{name: fmt.Sprint(name, ": rescheduled-", i), at: at, to: at.Add(time.Minute)})
	}
	return m
}

func (m *reschedules) submit(b *bundle, one *rescheduled, at time.Time, want int) object {
	b.t.Helper()
	push := object{"recipient": one.name, "send_at": at.Format(time.RFC3339), "message": object{}}
	a := b.repeat("POST", "/v1/pushes", push, "Idempotency-Key", uuid.NewString())
	if a.status != want {
		b.t.Errorf("%s at %s: %d %v, want %d", one.name, at.Format(time.TimeOnly), a.status, a.body, want)
	}
	return a.body
}

// settle books, and lets both APIs refuse the same place: the cache knows it.
func (m *reschedules) settle() {
	m.w.t.Helper()
	for _, one := range m.all {
		one.push, _ = m.submit(m.w, one, one.at, http.StatusCreated)["id"].(string)
		m.submit(m.other, one, one.at, http.StatusConflict)
		m.submit(m.w, one, one.at, http.StatusConflict)
	}
}

// change cancels every second push, and moves the others.
func (m *reschedules) change() {
	m.w.t.Helper()
	for i, one := range m.all {
		method, path, body := "POST", "/v1/pushes/"+one.push+"/cancel", any(nil)
		if i%2 == 1 {
			method, path, body = "PATCH", "/v1/pushes/"+one.push, object{"send_at": one.to.Format(time.RFC3339)}
		}
		if a := m.w.repeat(method, path, body); a.status != http.StatusOK {
			m.w.t.Errorf("%s %s: %d %v", method, path, a.status, a.body)
		}
	}
}

// check wants the other API to give what is free now, and to refuse what is
// taken, with the right free times.
func (m *reschedules) check() {
	m.w.t.Helper()
	for i, one := range m.all {
		if i%2 == 1 {
			a := m.submit(m.other, one, one.to.Add(time.Second), http.StatusConflict)
			if a["next_available_at"] != one.to.Add(3*time.Second).Format(time.RFC3339) || a["previous_available_at"] != one.to.Add(-3*time.Second).Format(time.RFC3339) {
				m.w.t.Errorf("%s beside %s: %v", one.name, one.to.Format(time.TimeOnly), a)
			}
		}
		m.submit(m.other, one, one.at.Add(time.Second), http.StatusCreated)
		a := m.submit(m.w, one, one.at, http.StatusConflict)
		if next := one.at.Add(4 * time.Second).Format(time.RFC3339); a["next_available_at"] != next {
			m.w.t.Errorf("%s: refused until %v, want %s: %v", one.name, a["next_available_at"], next, a)
		}
	}
}
