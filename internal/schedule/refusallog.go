package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/stats"
	"github.com/sendquota/sendquota/internal/suppression"
)

// keptRefusal is a refusal of a single push in the recipient's history of refusals.
type keptRefusal struct {
	Event
	Name      string // name of the API's problem
	Rules     []string
	Conflicts []conflict
}

// text encodes the refusal. Each refused submit has one, so it uses json v2, which is as fast as code written by hand;
// encoding/json takes 1.4 times the time.
func (k *keptRefusal) text() []byte {
	text, _ := jsonv2.Marshal(k, jsontext.AllowInvalidUTF8(true)) // cannot fail: the type has no value that JSON lacks
	return text
}

// conflict is a conflicting booking, in the form of the API.
type conflict struct {
	ID     uuid.UUID `json:"id"`
	SendAt time.Time `json:"send_at"`
}

// keptConflicts is the maximum number of conflicts stored with a refusal.
const keptConflicts = 10

// noteRefusal counts a planned push that was refused by a rule, a cap or an opt-out, and adds it to the recipient's
// history. It does not wait.
func (s *Service) noteRefusal(tenant uuid.UUID, r Request, sendAt time.Time, o Options, err error) {
	if o.ValidateOnly {
		return
	}
	of := keptRefusal{Event: Event{At: s.now().UTC(), Kind: Refused, Channel: cmp.Or(r.Channel, s.cfg.firstOf(tenant)), Category: r.Category, SendAt: sendAt}}
	if !of.because(err) {
		return
	}
	p := push.Push{Content: push.Content{Category: of.Category}}
	if o.retry != nil {
		p.Campaign = o.retry.push.Campaign
	}
	s.cfg.Refusals.count(tenant, booking.LevelOf(s.terms(tenant), &p), &of)
	s.cache.Refused(quota.Recipient{Tenant: tenant, ID: r.Recipient}, of.text())
}

// because sets the reason of a refusal. It reports false for other errors, such as an invalid form.
func (k *keptRefusal) because(err error) bool {
	if refusal, ok := errors.AsType[*Refusal](err); ok { // the usual case
		k.Name = "quiet-hours"
		for _, v := range refusal.Violations {
			if k.Rules = append(k.Rules, v.Rule.Name); !v.Rule.Quiet {
				k.Name = "quota-exceeded"
			}
			for _, b := range v.Conflicts {
				if c := (conflict{b.ID, b.At.UTC()}); len(k.Conflicts) < keptConflicts && !slices.Contains(k.Conflicts, c) {
					k.Conflicts = append(k.Conflicts, c)
				}
			}
		}
		k.Reason = refusedBy(k.Rules)
		return true
	}
	var (
		unwanted *OptedOut
		stopped  *Suppressed
		capped   *booking.Capped
	)
	switch {
	case errors.As(err, &unwanted):
		k.Name, k.Reason = booking.OptedOutReason, booking.OptedOutReason
	case errors.As(err, &stopped):
		k.Name, k.Reason = suppression.Failed, suppression.Failed
	case errors.As(err, &capped):
		k.Name, k.Rules, k.Reason = "tenant-cap-exceeded", []string{capped.Cap}, "the tenant's cap: "+capped.Cap
	default:
		return false
	}
	return true
}

// kept returns the recent refusals of single pushes to a recipient, the oldest first.
func (rs *Records) kept(ctx context.Context, r quota.Recipient) (all []keptRefusal) {
	for _, text := range rs.cache.Refusals(ctx, r) {
		var one keptRefusal
		if json.Unmarshal([]byte(text), &one) == nil && rs.now().Sub(one.At) < quota.RefusalTime {
			all = append(all, one)
		}
	}
	slices.Reverse(all)
	return all
}

// The maximum number of counts of refused pushes in memory, overall and per tenant. Tenants choose their categories
// freely; pushes beyond the maximum are not counted.
const (
	mostRefused   = 50_000
	tenantRefused = 5_000
)

// Refusals counts refused pushes. A nil Refusals counts nothing.
type Refusals struct {
	countBuffer[stats.RefusedCount]
}

// refusedStore adds counts to the stored ones.
type refusedStore interface {
	AddRefused(ctx context.Context, counts []stats.RefusedCount) error
}

// NewRefusals returns an empty counter.
func NewRefusals(st refusedStore, log *slog.Logger) *Refusals {
	return &Refusals{countBuffer[stats.RefusedCount]{
		name: "store counts of refused pushes", log: log, most: mostRefused, perTenant: tenantRefused,
		of:    func(c *stats.RefusedCount) (uuid.UUID, *int) { return c.Tenant, &c.Pushes },
		store: st.AddRefused,
	}}
}

// count counts a push once, and once for each rule that refused it.
func (r *Refusals) count(tenant uuid.UUID, level push.Level, k *keptRefusal) {
	if r == nil {
		return
	}
	of := stats.RefusedCount{Tenant: tenant, Hour: k.At.Truncate(time.Hour), Channel: k.Channel, Category: k.Category, Level: level, Pushes: 1}
	counts := []stats.RefusedCount{of}
	for i, rule := range k.Rules {
		if !slices.Contains(k.Rules[:i], rule) {
			of.Rule = rule
			counts = append(counts, of)
		}
	}
	r.add(counts...)
}
