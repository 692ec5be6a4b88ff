package httpapi

import (
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
)

// violationView is a rule without a place left.
type violationView struct {
	Rule          string         `json:"rule"`
	Limit         int            `json:"limit"`
	WindowSeconds float64        `json:"window_seconds"`
	Conflicts     []conflictView `json:"conflicts" doc:"The sends that fill the rule, by time: at most the nearest hundred, or ten in the answer to a large batch. A rule of limit 0 has none."`
	Omitted       int            `json:"conflicts_omitted,omitempty" doc:"How many more there are."`
}

// conflictView is a send that is in the way.
type conflictView struct {
	ID     string `json:"id" format:"uuid"`
	SendAt string `json:"send_at" format:"date-time"`
}

// quotaProblem is the answer to a push that finds no place.
type quotaProblem struct {
	Problem
	Violations          []violationView `json:"violations"`
	NextAvailableAt     *string         `json:"next_available_at" format:"date-time" nullable:"true" doc:"The first free time at or after the requested one; null if there is none."`
	PreviousAvailableAt *string         `json:"previous_available_at" format:"date-time" nullable:"true" doc:"The last free time before the requested one; null if none lies in the future."`
}

// fewConflicts leaves so many conflicts of each rule, those nearest to the time.
func fewConflicts(r *schedule.Refusal, most int) {
	for i := range r.Violations {
		r.Violations[i].Keep(most, r.SendAt)
	}
}

func quotaProblemOf(r *schedule.Refusal) *quotaProblem {
	return &quotaProblem{
		Problem: quotaExceeded.because(r.Error()), Violations: violationViews(r.Violations),
		NextAvailableAt: maybe(r.Next), PreviousAvailableAt: maybe(r.Previous),
	}
}

func violationViews(violations []quota.Violation) []violationView {
	return viewsOf(violations, func(v quota.Violation) violationView {
		conflicts := viewsOf(v.Conflicts, func(b quota.Booking) conflictView { return conflictView{ID: b.ID.String(), SendAt: stamp(b.At)} })
		return violationView{Rule: v.Rule.Name, Limit: v.Rule.Limit, WindowSeconds: v.Rule.Window.Seconds(), Conflicts: conflicts, Omitted: v.Omitted}
	})
}
