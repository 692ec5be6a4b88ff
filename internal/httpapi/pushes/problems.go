package pushes

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkchange"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/suppression"
)

// The problems with pushes. Clients know them by their names.
var (
	QuotaExceeded    = rest.NewKind("quota-exceeded", 409, "Send quota exceeded", "The recipient's quota has no place at the requested send time. Repeating the request does not help; another send time does.")
	QuietHours       = rest.NewKind("quiet-hours", 409, "Quiet hours", "The send time lies in quiet hours of the recipient. If a rule has no place left either, the problem is quota-exceeded, and violations lists both.")
	OptedOut         = rest.NewKind("opted-out", 409, "Opted out", "The recipient has opted out of this channel, of this category, or of everything; opted_out lists which.")
	Suppressed       = rest.NewKind("suppressed", 409, "Suppressed", "The address is suppressed on this channel: the provider has rejected it, its owner has stopped messages, or you have added it. suppression says why. Another address, or the removal of the entry, helps.")
	TenantCap        = rest.NewKind("tenant-cap-exceeded", 409, "Tenant cap exceeded", "The tenant has reached the operator's cap on pending pushes, on recipients per day, or on bytes of audiences. detail explains what to do.")
	NotCancelable    = rest.NewKind("not-cancelable", 409, "Not cancelable", "The push is being sent, or has ended.")
	NotReschedulable = rest.NewKind("not-reschedulable", 409, "Not reschedulable", "The push no longer waits for its send time.")
	NotRetryable     = rest.NewKind("not-retryable", 409, "Not retryable", "The push has neither failed nor expired: it was sent or canceled, or may still be sent.")
	PushGone         = rest.NewKind("push-gone", 410, "Push gone", "The Idempotency-Key created a push in the last 30 days, which has ended and is no longer stored. push_id names it; nothing was booked.")
	BatchRefused     = rest.NewKind("batch-refused", 424, "Batch refused", "Only in the results of an atomic batch: this push has a place, but another one does not.")
	TooManyBulk      = rest.NewKind("too-many-bulk-changes", 409, "Too many bulk changes", "The tenant has the maximum number of bulk changes under way; wait until one has ended, or stop one.")
)

// capProblem is the answer to a push or an audience that the tenant's caps refuse.
type capProblem struct {
	rest.Problem
	Cap   string  `json:"cap" enum:"pending_pushes,recipients_per_day,audience_bytes" doc:"Pushes that are scheduled or being sent; distinct recipients of pushes with a send time on one day of UTC; or bytes of the stored audiences."`
	Limit int     `json:"limit" doc:"The maximum that the operator has set."`
	Used  int     `json:"used" doc:"The current use. Counting stops one above the limit."`
	Day   *string `json:"day,omitempty" format:"date" doc:"For recipients_per_day: the day that is full."`
}

func capProblemOf(c *booking.Capped) *capProblem {
	p := &capProblem{Problem: TenantCap.Because(c.Error()), Cap: c.Cap, Limit: c.Limit, Used: c.Used}
	if c.Cap == booking.RecipientsPerDay {
		day := c.Day.Begin().Format(time.DateOnly)
		p.Day = &day
	}
	return p
}

type pushProblem struct {
	rest.Problem
	Push *pushView `json:"push" doc:"The current state of the push."`
}

type goneProblem struct {
	rest.Problem
	PushID uuid.UUID `json:"push_id" format:"uuid" doc:"The push that the first request created."`
}

func goneProblemOf(gone *push.GoneError) *goneProblem {
	return &goneProblem{PushGone.Because("an earlier request with this Idempotency-Key was accepted; its push has ended and is no longer stored"), gone.ID}
}

// aboutPush is an error and the push that it is about.
type aboutPush struct {
	error
	push push.Push
	view *pushView
}

func (e *aboutPush) Unwrap() error { return e.error }

// about returns an error about a push. The answer shows the push with its message.
func (h *pushes) about(c *rest.Call, err error, p push.Push) error {
	showMessage(c, &p)
	return &aboutPush{err, p, viewOf(h.texts, p)}
}

func (e *aboutPush) problem(k rest.Kind, format string) rest.Problemer {
	return &pushProblem{Problem: k.Because(fmt.Sprintf(format, e.push.Status)), Push: e.view}
}

// ProblemOf returns the problem for an error about pushes, or nil.
func ProblemOf(err error) rest.Problemer {
	if noPlace, ok := errors.AsType[*schedule.Refusal](err); ok { // the usual one
		return quotaProblemOf(noPlace)
	}
	var (
		batch    *refusedBatch
		capped   *booking.Capped
		unwanted *schedule.OptedOut
		stopped  *schedule.Suppressed
		about    *aboutPush
		gone     *push.GoneError
	)
	errors.As(err, &about)
	switch {
	case errors.As(err, &batch):
		return batch.problem()
	case errors.As(err, &unwanted):
		return optOutProblemOf(unwanted)
	case errors.As(err, &stopped):
		return suppressedProblemOf(stopped)
	case errors.As(err, &capped):
		return capProblemOf(capped)
	case errors.As(err, &gone):
		return goneProblemOf(gone)
	case errors.Is(err, push.ErrNotCancelable) && about != nil:
		return about.problem(NotCancelable, "the push is %s and cannot be canceled any more")
	case errors.Is(err, push.ErrNotReschedulable) && about != nil:
		return about.problem(NotReschedulable, "the push is %s and cannot be rescheduled any more")
	case errors.Is(err, push.ErrNotRetryable) && about != nil:
		return about.problem(NotRetryable, "the push is %s; only one that has failed or expired is retried")
	}
	return rest.PlainProblem(err, plainPushProblems)
}

var plainPushProblems = []rest.Plain{
	rest.PlainOf(push.ErrNotFound, rest.NotFound, "the push does not exist"),
	rest.PlainOf(bulkchange.ErrTooMany, TooManyBulk, "the tenant has the maximum number of bulk changes under way; wait until one has ended, or stop one"),
	rest.PlainOf(schedule.ErrOthersRefused, BatchRefused, schedule.ErrOthersRefused.Error()),
}

// optOutProblem is the answer to a push that the recipient has opted out of.
type optOutProblem struct {
	rest.Problem
	OptedOut optOutsView `json:"opted_out" doc:"The recipient's opt-outs that forbid the push."`
}

// suppressedProblem is the answer to a push to a suppressed address.
type suppressedProblem struct {
	rest.Problem
	Suppression suppressedForView `json:"suppression" doc:"The oldest entry in force for the address."`
}

// suppressedForView is the reason why an address is suppressed.
type suppressedForView struct {
	Channel string             `json:"channel"`
	Reason  suppression.Reason `json:"reason" enum:"hard_bounce,complaint,stop,unregistered,manual"`
	At      string             `json:"at" format:"date-time"`
	Until   *string            `json:"until" format:"date-time" nullable:"true" doc:"The end; null: it has none."`
	Push    *string            `json:"push" format:"uuid" nullable:"true" doc:"The push that the provider or the owner answered; null: none."`
}

func suppressedForViewOf(e *suppression.Entry) *suppressedForView {
	return &suppressedForView{e.Channel, e.Reason, rest.Stamp(e.At), rest.MaybeTime(e.Until), rest.MaybeID(e.Push)}
}

func suppressedProblemOf(s *schedule.Suppressed) *suppressedProblem {
	return &suppressedProblem{Problem: Suppressed.Because(s.Error()), Suppression: *suppressedForViewOf(&s.Entry)}
}

func optOutProblemOf(o *schedule.OptedOut) *optOutProblem {
	return &optOutProblem{Problem: OptedOut.Because(o.Error()), OptedOut: *optOutsViewOf(o.OptOuts)}
}
