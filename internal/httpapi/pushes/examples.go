package pushes

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/suppression"
	"github.com/sendquota/sendquota/internal/zone"
)

var exampleBatchRequest = json.RawMessage(`{"atomic": false, "pushes": [
	{"recipient": "user-42", "send_at": "2026-12-01T08:00:00Z", "message": {"body": "Hello."}},
	{"recipient": "user-43", "send_at": "2026-12-01T08:00:00Z", "message": {"body": "Hello."}}]}`)

var exampleRefusal = &schedule.Refusal{Recipient: "user-42", SendAt: rest.ExampleTime(0), Decision: quota.Decision{
	Violations: []quota.Violation{{
		Rule: exampleRule, Conflicts: []quota.Booking{{ID: uuid.MustParse(rest.ExampleOtherID), At: rest.ExampleTime(30 * time.Second)}},
	}},
	Next: rest.ExampleTime(90 * time.Second), Previous: rest.ExampleTime(-30 * time.Second),
}}

var refusedExample = BatchRefused.Because(BatchRefused.When)

// ExampleOf returns an example of a problem with pushes that has members of its own, or nil.
func ExampleOf(k rest.Kind) rest.Problemer {
	switch k {
	case QuotaExceeded:
		return quotaProblemOf(exampleRefusal)
	case TenantCap:
		return capProblemOf(&booking.Capped{Cap: booking.PendingPushes, Limit: 10_000, Used: 10_000})
	case QuietHours:
		night := quota.Rule{Name: "night", Quiet: true, Periods: zone.Hours{Zone: time.UTC, Days: zone.EveryDay, From: 22 * time.Hour, Until: 8 * time.Hour}}
		return quotaProblemOf(&schedule.Refusal{Recipient: "user-42", SendAt: rest.ExampleTime(-330 * time.Minute), Decision: quota.Decision{
			Violations: []quota.Violation{{Rule: night}}, Next: rest.ExampleTime(0), Previous: rest.ExampleTime(-10*time.Hour - time.Second),
		}})
	case OptedOut:
		return optOutProblemOf(&schedule.OptedOut{Recipient: "user-42", OptOuts: booking.OptOuts{Channels: []string{"sms"}}})
	case Suppressed:
		return suppressedProblemOf(&schedule.Suppressed{Recipient: "user-42", Entry: suppression.Entry{Channel: "sms", Reason: suppression.Stop, At: rest.ExampleTime(-24 * time.Hour)}})
	case PushGone:
		return goneProblemOf(&push.GoneError{ID: uuid.MustParse(rest.ExampleID)})
	case NotCancelable, NotReschedulable, NotRetryable:
		p := k.Because("the push is sent and cannot be changed any more")
		return &pushProblem{Problem: p, Push: examplePush(push.Sent)}
	}
	return nil
}
