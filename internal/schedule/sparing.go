package schedule

import "time"

// sparing bounds the time for which a loop looks for something rare among all that waits or is under way. A look that
// took long, because these are very many, is followed by a longer pause. It is not safe for concurrent use.
type sparing struct{ next time.Time }

// Between the beginnings of two looks there is so many times as long as the first one takes. Where it failed, Postgres
// may have been away, and what was not found is late already.
const (
	gapOfLook   = 50
	gapOfFailed = 2
	longestGap  = time.Minute
)

// look looks, unless it is too early. A look that is full, as it found as much as can be handled at once, is followed by
// another at any time.
func (s *sparing) look(look func() (full bool, err error)) (full bool, err error) {
	began := time.Now()
	if began.Before(s.next) {
		return false, nil
	}
	full, err = look()
	took := time.Since(began)
	switch {
	case err != nil:
		s.next = began.Add(gapOfFailed * took)
	case !full:
		s.next = began.Add(min(gapOfLook*took, longestGap))
	}
	return full, err
}
