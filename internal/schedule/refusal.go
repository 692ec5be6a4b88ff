package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/suppression"
)

// Refusal is a push that finds no place in its recipient's quota: the reasons, and the nearest free times.
type Refusal struct {
	Recipient string
	SendAt    time.Time
	quota.Decision
}

// Error returns the reasons in one sentence.
func (r *Refusal) Error() string {
	reasons := make([]string, len(r.Violations))
	for i, v := range r.Violations {
		reasons[i] = reason(v, r.SendAt)
	}
	return r.Recipient + " " + strings.Join(reasons, ", and ")
}

func reason(v quota.Violation, at time.Time) string {
	switch {
	case v.Rule.Quiet:
		_, until, _ := v.Rule.Periods.Around(at)
		return fmt.Sprintf("is in quiet hours until %s (%s)", until.UTC().Format(time.RFC3339), v.Rule.Name)
	case v.Rule.Limit == 0:
		return fmt.Sprintf("may not be sent anything (rule %s has limit 0)", v.Rule.Name)
	}
	n, sends := max(0, v.Rule.Limit-v.Rule.Reserved), " sends"
	if n == 1 {
		sends = " send"
	}
	has := "already has " + strconv.Itoa(n) + sends // not by fmt, for speed: each refused submit builds one
	if v.Rule.Reserved > 0 {
		has += fmt.Sprintf(", and %d of the %d places are reserved for another category,", min(v.Rule.Reserved, v.Rule.Limit), v.Rule.Limit)
	}
	rule := " (rule " + v.Rule.Name + ")"
	if v.Rule.Periods != nil {
		from, until, _ := v.Rule.Periods.Around(at)
		return has + " from " + from.Format(time.RFC3339) + " until " + until.Format(time.RFC3339) + rule
	}
	return has + " within " + duration.Words(v.Rule.Window) + " of " + at.Format(time.RFC3339) + rule
}

// OptedOut is a push that its recipient has opted out of.
type OptedOut struct {
	Recipient string
	booking.OptOuts
}

// Error returns the opt-outs in one sentence.
func (o *OptedOut) Error() string {
	of := make([]string, 0, 2)
	for _, c := range o.Channels {
		of = append(of, "the channel "+c)
	}
	for _, c := range o.Categories {
		of = append(of, "the category "+c)
	}
	if o.All {
		of = []string{"all pushes"}
	}
	return o.Recipient + " has opted out of " + strings.Join(of, " and of ")
}

// Suppressed is a push to an address that is suppressed.
type Suppressed struct {
	Recipient string
	suppression.Entry
}

// suppressedWords has what is known of an address, by the reason of its suppression.
var suppressedWords = map[suppression.Reason]string{
	suppression.HardBounce:   "the provider reported that the address does not exist",
	suppression.Complaint:    "a message to it was marked as spam",
	suppression.Stop:         "its owner has answered STOP",
	suppression.Unregistered: "the provider does not know the device any more",
	suppression.Manual:       "it was added by hand or by an import",
}

// Error returns the reason in one sentence.
func (s *Suppressed) Error() string {
	until := ""
	if !s.Until.IsZero() {
		until = " until " + s.Until.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("the address of %s on the channel %s is suppressed%s: %s", s.Recipient, s.Channel, until, suppressedWords[s.Reason])
}

// noAddress returns the error of a push without an address whose recipient has none for the channel.
func (s *Service) noAddress(p *push.Push) error {
	to, _ := withoutAddress(s.cfg.checkFor(p.Tenant, p.Channel, "", p.Message))
	return to.Err()
}

// noChannel returns the error of a push whose channel the tenant has deleted since it was checked, perhaps in another process.
func (s *Service) noChannel(p *push.Push) error {
	s.cfg.Own.Refresh(p.Tenant)
	var bad invalid.FieldErrors
	if channelIn(s.cfg.Own.Names(p.Tenant), p.Channel, &bad); len(bad) == 0 {
		bad.Add("channel", p.Channel, "is being deleted; try again")
	}
	return bad
}
