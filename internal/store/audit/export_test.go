package audit

import (
	"time"

	"github.com/sendquota/sendquota/internal/booking"
)

// CutAt makes chunks begin at these keys, in ascending order, and end where the next one begins.
func (p *Pass) CutAt(keys []int64) {
	p.cuts, p.state.Walk.Step = keys, mostStep
}

// LimitChunks sets the maximum duration of a chunk's snapshot.
func (p *Pass) LimitChunks(most time.Duration) { p.limit = most }

// Result returns the findings of the pass up to now.
func (p *Pass) Result() booking.AuditResult { return p.state.AuditResult }
