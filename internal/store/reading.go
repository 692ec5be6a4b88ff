package store

import (
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/quota"
)

// portion is how many recipients' bookings are read together. An order for a
// thousand recipients with a thousand bookings each never has all of them in memory.
const portion = 128

// reading is the bookings that a decider needs, on their way from Postgres: it reads
// a portion when the first of its recipients is needed.
type reading struct {
	decider *decider
	spans   []span
	results pgx.BatchResults
	read    int // spans
	err     error
}

// queue asks for all portions.
func (r *reading) queue(b *pgx.Batch) {
	for from := 0; from < len(r.spans); {
		n := r.portion(from)
		b.Queue(bookingsSQL, spanArgs(r.spans[from:from+n])...)
		from += n
	}
}

// portion is how many spans from one on are read together. One of which all
// bookings are read, however many they are, is read alone.
func (r *reading) portion(from int) int {
	n := 0
	for from+n < len(r.spans) && n < portion && (r.spans[from+n].most > 0 || r.spans[from+n].known) {
		n++
	}
	return max(n, 1)
}

// until reads up to a span. A failure is kept for close: what is decided
// afterwards is never written.
func (r *reading) until(i int) {
	for r.err == nil && r.read <= i {
		r.err = r.next()
	}
}

// next reads a portion.
func (r *reading) next() error {
	spans := r.spans[r.read : r.read+r.portion(r.read)]
	rows, _ := r.results.Query()
	held, err := collectBookings(rows, len(spans))
	if err != nil {
		return err
	}
	for n, sp := range spans {
		if v := &r.decider.views[r.read+n]; !sp.known {
			v.From, v.Until, v.Timeline = sp.from, sp.until, quota.NewTimeline(bookingsOf(held[n]))
		}
		if sp.most > 0 && len(held[n]) > sp.most {
			r.decider.crowded = append(r.decider.crowded, sp.recipient)
		}
	}
	r.read += len(spans)
	return nil
}

// close ends the exchange with Postgres, and reports what failed.
func (r *reading) close() error {
	if err := r.results.Close(); r.err == nil {
		r.err = err
	}
	return r.err
}
