package e2e

import (
	"fmt"
	"net/http"
	"time"
)

// mover is a recipient whose only push is moved while Redis is in trouble.
type mover struct {
	name, push string
	at, to     time.Time
}

// movers change in trouble through one API. Afterwards the other API must know.
type movers struct {
	w, other *world
	all      []*mover
}

func newMovers(w, other *world) *movers {
	m := &movers{w: w, other: other}
	at := time.Now().UTC().Add(2 * time.Hour).Truncate(time.Minute)
	for i := range 12 {
		m.all = append(m.all, &mover{name: fmt.Sprint("mover-", i), at: at, to: at.Add(time.Minute)})
	}
	return m
}

func (m *movers) submit(w *world, one *mover, at time.Time, want int) object {
	w.t.Helper()
	status, a := w.call("POST", "/v1/pushes", object{"recipient": one.name, "send_at": at.Format(time.RFC3339), "message": object{}})
	if status != want {
		w.t.Errorf("%s at %s: %d %v, want %d", one.name, at.Format(time.TimeOnly), status, a, want)
	}
	return a
}

// settle books, and lets both APIs refuse the same place: the cache knows it.
func (m *movers) settle() {
	m.w.t.Helper()
	for _, one := range m.all {
		one.push, _ = m.submit(m.w, one, one.at, http.StatusCreated)["id"].(string)
		m.submit(m.other, one, one.at, http.StatusConflict)
		m.submit(m.w, one, one.at, http.StatusConflict)
	}
}

// change cancels every second push, and moves the others.
func (m *movers) change() {
	m.w.t.Helper()
	for i, one := range m.all {
		method, path, body := "POST", "/v1/pushes/"+one.push+"/cancel", any(nil)
		if i%2 == 1 {
			method, path, body = "PATCH", "/v1/pushes/"+one.push, object{"send_at": one.to.Format(time.RFC3339)}
		}
		if status, a := m.w.call(method, path, body); status != http.StatusOK {
			m.w.t.Errorf("%s %s: %d %v", method, path, status, a)
		}
	}
}

// check wants the other API to give what is free now, and to refuse what is
// taken, with the right free times.
func (m *movers) check() {
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
