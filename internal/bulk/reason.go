package bulk

import (
	"errors"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkchange"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
)

// because sets the outcome of a push that was not changed. It returns other errors, which do not concern the push
// itself.
func because(one bulkchange.Push, err error) (bulkchange.Push, error) {
	var (
		refusal *schedule.Refusal
		opted   *schedule.OptedOut
		capped  *booking.Capped
		bad     invalid.FieldErrors
	)
	switch {
	case errors.Is(err, push.ErrMoved):
		one.Outcome = bulkchange.MovedMeanwhile
	case errors.Is(err, push.ErrNotFound), errors.Is(err, push.ErrNotCancelable), errors.Is(err, push.ErrNotReschedulable):
		one.Outcome = bulkchange.NotScheduled
	case errors.As(err, &opted):
		one.Outcome = booking.OptedOutReason
	case errors.As(err, &capped):
		one.Outcome, one.Rules = "tenant-cap-exceeded", []string{capped.Cap}
	case errors.As(err, &refusal):
		one.Outcome = "quiet-hours"
		for _, v := range refusal.Violations {
			if one.Rules = append(one.Rules, v.Rule.Name); !v.Rule.Quiet {
				one.Outcome = "quota-exceeded"
			}
		}
	case errors.As(err, &bad):
		one.Outcome = bulkchange.InvalidTime
	default:
		return one, err
	}
	return one, nil
}
