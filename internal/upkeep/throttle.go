package upkeep

import "time"

// throttle bounds the share of time that a loop searches for rare records among many. A search that takes long is
// followed by a longer pause. It is not safe for concurrent use.
type throttle struct{ next time.Time }

// The time between the starts of two searches is a multiple of the first one's duration. After a failure it is shorter:
// Postgres may have been away, and what was not found is late already.
const (
	gapFactor       = 50
	failedGapFactor = 2
	longestGap      = time.Minute
)

// run runs search, unless the pause is not over. After a full search, which found as much as can be handled at once,
// there is no pause.
func (s *throttle) run(search func() (full bool, err error)) (full bool, err error) {
	began := time.Now()
	if began.Before(s.next) {
		return false, nil
	}
	full, err = search()
	took := time.Since(began)
	switch {
	case err != nil:
		s.next = began.Add(failedGapFactor * took)
	case !full:
		s.next = began.Add(min(gapFactor*took, longestGap))
	}
	return full, err
}
