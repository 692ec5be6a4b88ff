package recipients

import (
	"context"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/quota"
)

// EraseSlowly is Erase for tests: it calls between after each step but the last.
func (s *Store) EraseSlowly(ctx context.Context, who quota.Recipient, between func()) (booking.Erased, error) {
	e := s.newErasure(who)
	for i, step := range e.steps() {
		if i > 0 {
			between()
		}
		if err := step(ctx); err != nil {
			return e.Erased, err
		}
	}
	return e.Erased, nil
}
