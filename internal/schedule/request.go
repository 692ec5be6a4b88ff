package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Request is one push as a caller asks for it, its form already checked.
type Request struct {
	Recipient, Channel, Category, To string
	Message, Metadata                json.RawMessage

	// Template says that the strings of the message are templates in Liquid. They know the variables, a JSON object or nil, and the
	// attributes of the recipient.
	Template  bool
	Variables json.RawMessage

	SendAt    time.Time // zero: LocalTime, or now
	LocalTime time.Time // see [When]
	TimeZone  string    // of LocalTime
	ExpiresAt time.Time // zero: it follows from the time to live

	Behind time.Duration // see [When]

	TTL    time.Duration // how long after its send time it expires; 0: the default
	Defer  bool          // a conflict moves it to the next free time
	Latest time.Time     // but not after this; zero: as late as any push may be

	Now time.Time // by which it is decided, where a better clock than the service's is known; zero: there is none
}

// clock returns what is now for a request.
func (s *Service) clock(r *Request) time.Time {
	if r.Now.IsZero() {
		return s.now().UTC()
	}
	return r.Now.UTC()
}

// Validator returns what says all that Submit would find wrong with one of some requests before it reads or books anything. Callers
// that found other errors report them together with these. What it has to know of recipients it reads for all of them at once.
func (s *Service) Validator(ctx context.Context, tenant uuid.UUID, all iter.Seq[*Request]) func(Request) invalid.FieldErrors {
	known := standingsOf(all)
	return func(r Request) invalid.FieldErrors {
		var bad invalid.FieldErrors
		_, err := s.planRendered(ctx, tenant, r, known)
		errors.As(err, &bad)
		return bad
	}
}

// Draft turns a request for a recipient, of whom this is known, into what is to be booked. Its errors are
// [invalid.FieldErrors]: it reads nothing.
func (s *Service) Draft(tenant uuid.UUID, r Request, of booking.Standing) (booking.Draft, error) {
	return s.planFor(context.Background(), tenant, r, s.cfg.Check, &standings{read: map[string]booking.Standing{r.Recipient: of}})
}

// plan turns a request into a draft, or says all that is wrong with it.
func (s *Service) plan(ctx context.Context, tenant uuid.UUID, r Request) (booking.Draft, error) {
	return s.planRendered(ctx, tenant, r, nil)
}

// planFor is plan, for what is no template, with another check of what the provider would refuse, or nil, and with what is known of
// recipients.
func (s *Service) planFor(
	ctx context.Context, tenant uuid.UUID, r Request, check func(channel, to string, message json.RawMessage) invalid.FieldErrors, known *standings,
) (d booking.Draft, err error) {
	now := s.clock(&r)
	var bad invalid.FieldErrors
	p := push.Push{
		Tenant: tenant, Recipient: r.Recipient, Channel: s.channel(r.Channel, &bad), Category: r.Category, To: r.To,
		Message: r.Message, Metadata: r.Metadata, ExpiresAt: r.ExpiresAt,
	}
	var noAddress invalid.FieldErrors // of a push that may go to its recipient's
	if check != nil {
		faults := check(p.Channel, p.To, p.Message)
		if p.To == "" {
			noAddress, faults = withoutAddress(faults)
		}
		bad = append(bad, faults...)
	}
	if p.SendAt, err = s.when(ctx, r.when(), quota.Recipient{Tenant: tenant, ID: r.Recipient}, known, now, &bad); err != nil {
		return d, err
	}
	p.RequestedSendAt = p.SendAt
	latest := now.Add(s.cfg.MaxHorizon).Truncate(quota.Second)
	if r.ExpiresAt.IsZero() {
		p.TTL = cmp.Or(r.TTL, s.cfg.DefaultTTL)
	} else {
		checkExpiry(r.ExpiresAt, p.SendAt, now, &bad)
		latest = earliest(latest, r.ExpiresAt.Add(-time.Nanosecond).Truncate(quota.Second))
	}
	d = booking.Draft{Push: p, Last: latest, NeedsAddress: len(noAddress) > 0}
	if r.Defer {
		d.Latest = latest
		if !r.Latest.IsZero() {
			d.Latest = earliest(latest, r.Latest.UTC().Truncate(quota.Second))
			if d.Latest.Before(p.SendAt) {
				bad.Add("latest", stamp(r.Latest), "must not be before send_at, %s", p.SendAt)
			}
		}
	}
	if len(bad) > 0 && len(noAddress) > 0 { // all that is wrong is said at once; if nothing else is, the decider looks
		of, err := s.standing(ctx, d.Recipient(), known)
		if err != nil {
			return d, err
		}
		if of.Person.Addresses[p.Channel] == "" {
			bad = append(noAddress, bad...)
		}
	}
	return d, bad.Err()
}

func (s *Service) channel(name string, bad *invalid.FieldErrors) string {
	if name == "" {
		return s.cfg.Channels[0]
	}
	if !slices.Contains(s.cfg.Channels, name) {
		bad.Add("channel", name, "%s", s.unknownChannel())
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
