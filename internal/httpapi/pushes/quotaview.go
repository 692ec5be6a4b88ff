package pushes

import (
	"slices"
	"strconv"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/zone"
)

var exampleRule = quota.Rule{Name: "per-minute", Limit: 1, Window: time.Minute}

// violationView is a rule without a place.
type violationView struct {
	Rule          string         `json:"rule"`
	Limit         int            `json:"limit"`
	WindowSeconds float64        `json:"window_seconds" doc:"The length of the window; for a rule with per, and for quiet hours, of the period that contains the time."`
	Per           string         `json:"per,omitempty" enum:"hour,day,week,month" doc:"The calendar unit of a calendar rule. Other rules and quiet hours have none."`
	Conflicts     []conflictView `json:"conflicts" doc:"The sends that fill the rule, by time: at most the nearest hundred, or ten in the answer to a large batch. A rule of limit 0 and quiet hours have none."`
	Omitted       int            `json:"conflicts_omitted,omitempty" doc:"The number of further conflicts."`
	Until         *string        `json:"until,omitempty" format:"date-time" doc:"For a rule with per, and for quiet hours: the end of the period that contains the time. Other rules have none."`
}

// conflictView is a send that fills a rule.
type conflictView struct {
	ID     string `json:"id" format:"uuid"`
	SendAt string `json:"send_at" format:"date-time"`
}

// quotaProblem is the answer to a push without a place.
type quotaProblem struct {
	rest.Problem
	Violations          []violationView `json:"violations"`
	NextAvailableAt     *string         `json:"next_available_at" format:"date-time" nullable:"true" doc:"The first free time at or after the requested one; null if there is none."`
	PreviousAvailableAt *string         `json:"previous_available_at" format:"date-time" nullable:"true" doc:"The last free time before the requested one; null if none lies in the future."`
}

// fewConflicts keeps at most most conflicts of each rule, those nearest to the send time.
func fewConflicts(r *schedule.Refusal, most int) {
	for i := range r.Violations {
		r.Violations[i].Keep(most, r.SendAt)
	}
}

func quotaProblemOf(r *schedule.Refusal) *quotaProblem {
	kind := QuietHours
	if slices.ContainsFunc(r.Violations, func(v quota.Violation) bool { return !v.Rule.Quiet }) {
		kind = QuotaExceeded
	}
	return &quotaProblem{
		Problem: kind.Because(r.Error()), Violations: violationViews(r.Violations, r.SendAt),
		NextAvailableAt: rest.MaybeTime(r.Next), PreviousAvailableAt: rest.MaybeTime(r.Previous),
	}
}

// optOutsView lists the opt-outs that forbid a push.
type optOutsView struct {
	All        bool     `json:"all,omitempty" doc:"The recipient has opted out of everything."`
	Channels   []string `json:"channels"`
	Categories []string `json:"categories"`
}

func optOutsViewOf(o booking.OptOuts) *optOutsView {
	return &optOutsView{All: o.All, Channels: append([]string{}, o.Channels...), Categories: append([]string{}, o.Categories...)}
}

func violationViews(violations []quota.Violation, at time.Time) []violationView {
	return rest.ViewsOf(violations, func(v quota.Violation) violationView {
		conflicts := rest.ViewsOf(v.Conflicts, func(b quota.Booking) conflictView { return conflictView{ID: b.ID.String(), SendAt: rest.Stamp(b.At)} })
		view := violationView{Rule: v.Rule.Name, Limit: v.Rule.Limit, WindowSeconds: windowSeconds(v.Rule, at), Conflicts: conflicts, Omitted: v.Omitted}
		if v.Rule.Periods != nil {
			_, until, _ := v.Rule.Periods.Around(at)
			view.Until = rest.MaybeTime(until)
		}
		if calendar, ok := v.Rule.Periods.(zone.Calendar); ok {
			view.Per = calendar.Unit.String()
		}
		return view
	})
}

func (p *quotaProblem) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"type":`, p.Type)
	b = appendText(b, `,"title":`, p.Title)
	b = strconv.AppendInt(append(b, `,"status":`...), int64(p.Status), 10)
	b = appendSome(b, `,"detail":`, p.Detail)
	b = appendAll(append(b, `,"violations":`...), p.Violations, (*violationView).AppendJSON)
	b = appendMaybe(b, `,"next_available_at":`, p.NextAvailableAt)
	return append(appendMaybe(b, `,"previous_available_at":`, p.PreviousAvailableAt), '}')
}

func (v *violationView) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"rule":`, v.Rule)
	b = strconv.AppendInt(append(b, `,"limit":`...), int64(v.Limit), 10)
	b = strconv.AppendFloat(append(b, `,"window_seconds":`...), v.WindowSeconds, 'f', -1, 64)
	b = appendSome(b, `,"per":`, v.Per)
	b = appendAll(append(b, `,"conflicts":`...), v.Conflicts, (*conflictView).AppendJSON)
	if v.Omitted != 0 {
		b = strconv.AppendInt(append(b, `,"conflicts_omitted":`...), int64(v.Omitted), 10)
	}
	if v.Until != nil {
		b = appendText(b, `,"until":`, *v.Until)
	}
	return append(b, '}')
}

func (v *conflictView) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"id":`, v.ID)
	return append(appendText(b, `,"send_at":`, v.SendAt), '}')
}
