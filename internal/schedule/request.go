package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Request is a caller's request for one push. Its form was already checked.
type Request struct {
	push.Content

	// Template marks the strings of the message as Liquid templates. They can use Variables, a JSON object or nil, and
	// the attributes of the recipient.
	Template  bool
	Variables json.RawMessage

	SendAt    time.Time // zero: LocalTime, or now
	LocalTime time.Time // see [When]
	TimeZone  string    // of LocalTime
	ExpiresAt time.Time // zero: the send time plus the time to live

	Behind time.Duration // see [When]

	TTL    time.Duration // how long after its send time the push expires; 0: the default
	Defer  bool          // move the push to the next free time on a conflict
	Latest time.Time     // the latest such time; zero: any time within the horizon

	Now time.Time // current time by a better clock than the service's; zero: use the service's clock
}

// Planner turns requests into drafts: it checks them, renders their templates, and computes their send times.
type Planner struct {
	store planStore
	cfg   Config
	now   func() time.Time
}

// planStore reads what plans need to know of recipients.
type planStore interface {
	Standing(ctx context.Context, r quota.Recipient, file booking.Terms) (booking.Standing, error)
	Standings(ctx context.Context, tenant uuid.UUID, ids []string, file booking.Terms) (booking.Terms, map[string]booking.Person, error)
	Attributes(ctx context.Context, tenant uuid.UUID, ids []string) (map[string]json.RawMessage, error)
	Paused(p *push.Push, now time.Time) bool
}

// clock returns the current time for a request.
func (pl *Planner) clock(r *Request) time.Time {
	if r.Now.IsZero() {
		return pl.now().UTC()
	}
	return r.Now.UTC()
}

// Validator returns a function that returns all errors that Submit would find in a request before it books. Callers
// merge these with their own errors. The function reads the recipients of all requests at once.
func (pl *Planner) Validator(ctx context.Context, tenant uuid.UUID, all iter.Seq[*Request]) func(Request) invalid.FieldErrors {
	known := standingsOf(all)
	return func(r Request) invalid.FieldErrors {
		var bad invalid.FieldErrors
		_, err := pl.plan(ctx, tenant, r, pl.cfg.checkFor, known)
		errors.As(err, &bad)
		return bad
	}
}

// Draft turns a request into a draft, given the standing of its recipient. It reads nothing, and its errors are
// [invalid.FieldErrors].
func (pl *Planner) Draft(tenant uuid.UUID, r Request, of booking.Standing) (booking.Draft, error) {
	return pl.planFor(context.Background(), tenant, r, pl.cfg.checkFor, &standings{read: map[string]booking.Standing{r.Recipient: of}})
}

// messageCheck returns what the provider of a tenant's channel would refuse about an address and a message.
type messageCheck = func(tenant uuid.UUID, channel, to string, message json.RawMessage) invalid.FieldErrors

// plan turns a request into a draft, or returns all its faults. It renders templates first. check finds what the provider
// would refuse; nil skips this. known caches standings; nil: read when needed.
func (pl *Planner) plan(ctx context.Context, tenant uuid.UUID, r Request, check messageCheck, known *standings) (booking.Draft, error) {
	if r.Template {
		return pl.planTemplate(ctx, tenant, r, check, known)
	}
	return pl.planFor(ctx, tenant, r, check, known)
}

// planFor plans a request whose message is no template, or is rendered.
func (pl *Planner) planFor(
	ctx context.Context, tenant uuid.UUID, r Request, check messageCheck, known *standings,
) (d booking.Draft, err error) {
	now := pl.clock(&r)
	var bad invalid.FieldErrors
	p := push.Push{Tenant: tenant, Content: r.Content, ExpiresAt: r.ExpiresAt}
	p.Channel = channelIn(pl.cfg.channelsOf(tenant), r.Channel, &bad)
	var noAddress invalid.FieldErrors // faults that disappear if the recipient has an address
	if check != nil {
		faults := check(tenant, p.Channel, p.To, p.Message)
		if p.To == "" {
			noAddress, faults = withoutAddress(faults)
		}
		bad = append(bad, faults...)
	}
	if p.SendAt, err = pl.when(ctx, r.when(), quota.Recipient{Tenant: tenant, ID: r.Recipient}, known, now, &bad); err != nil {
		return d, err
	}
	p.RequestedSendAt = p.SendAt
	latest := now.Add(pl.cfg.MaxHorizon).Truncate(quota.Second)
	if r.ExpiresAt.IsZero() {
		p.TTL = cmp.Or(r.TTL, pl.cfg.DefaultTTL)
	} else {
		checkExpiry(r.ExpiresAt, p.SendAt, now, &bad)
		latest = earliest(latest, r.ExpiresAt.Add(-time.Nanosecond).Truncate(quota.Second))
	}
	d = booking.Draft{Push: p, Last: latest, NeedsAddress: len(noAddress) > 0, OwnOnly: pl.cfg.Own != nil && pl.cfg.Own.OwnOnly(tenant, p.Channel)}
	if r.Defer {
		d.Latest = latest
		if !r.Latest.IsZero() {
			d.Latest = earliest(latest, r.Latest.UTC().Truncate(quota.Second))
			if d.Latest.Before(p.SendAt) {
				bad.Add("latest", stamp(r.Latest), "must not be before send_at, %s", p.SendAt)
			}
		}
	}
	if len(bad) > 0 && len(noAddress) > 0 { // report all faults at once; without others, the decider checks the address
		of, err := pl.standing(ctx, d.Recipient(), known)
		if err != nil {
			return d, err
		}
		if of.Person.Addresses[p.Channel] == "" {
			bad = append(noAddress, bad...)
		}
	}
	return d, bad.Err()
}

// withoutAddress separates the faults of an address from the others.
func withoutAddress(bad invalid.FieldErrors) (to, others invalid.FieldErrors) {
	for _, e := range bad {
		if e.Field == "to" {
			to = append(to, e)
		} else {
			others = append(others, e)
		}
	}
	return to, others
}

// channelIn returns the channel that a request names, or the first one.
func channelIn(channels []string, name string, bad *invalid.FieldErrors) string {
	if name == "" && len(channels) > 0 {
		return channels[0]
	}
	if !slices.Contains(channels, name) {
		bad.Add("channel", name, "%s", invalid.UnknownName("channel", name, channels))
	}
	return name
}

func checkExpiry(expires, sendAt, now time.Time, bad *invalid.FieldErrors) {
	switch {
	case !expires.After(sendAt):
		bad.Add("expires_at", stamp(expires), "must be after send_at, %s", sendAt)
	case !expires.After(now):
		bad.Add("expires_at", stamp(expires), "must be in the future; it is now %s", invalid.Now(now))
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// DefaultZone returns the name of the default time zone under the tenant's current policy.
func (pl *Planner) DefaultZone(ctx context.Context, tenant uuid.UUID) (string, error) {
	of, err := pl.store.Standing(ctx, quota.Recipient{Tenant: tenant}, pl.cfg.Policy)
	if err != nil {
		return "", fmt.Errorf("default zone: %w", err)
	}
	if terms, ok := of.Terms.(interface{ DefaultZone() *time.Location }); ok {
		return terms.DefaultZone().String(), nil
	}
	return "UTC", nil
}

// paused reports whether a pause stops a push now. Call it after a transaction of the tenant: that has found the pauses in
// force.
func (pl *Planner) paused(p *push.Push) bool { return pl.store.Paused(p, pl.now()) }
