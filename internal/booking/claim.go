package booking

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/suppression"
)

// ClaimOrder asks for the oldest due push of a recipient.
type ClaimOrder struct {
	RecipientKey int64         // see [push.RecipientKey]
	Policy       Terms         // of a tenant without a policy of its own
	Lease        time.Duration // how long the attempt may take before it counts as lost

	Channel string   // the route of the push; "": any except Without
	Without []string // routes that cannot take a push now; with [OwnRoute], no channel of a tenant can

	Token uuid.UUID // of the attempt; the store sets it, so that a repeated claim finds its own attempt
}

// MaxWait is the longest wait that a claim asks its caller for, instead of putting the push off. It keeps sends on time
// that are exactly a window apart.
const MaxWait = 2 * time.Second

// LockWait is the wait that a claim asks its caller for if another transaction has the recipient's lock. Most
// transactions take a few milliseconds.
const LockWait = 20 * time.Millisecond

// ClaimOutcome is the outcome of a claim.
type ClaimOutcome int

// The outcomes of a claim.
const (
	Nothing       ClaimOutcome = iota // no push is due, or an attempt is running: its worker claims again when it ends
	Claimed                           // the caller must send the push before LeaseUntil
	Wait                              // a push is due or may be sent in less than MaxWait, or the recipient is locked: claim again then
	PutOff                            // the push was put off to NextAt because of the recipient's actual sends; others may be due
	Unwanted                          // the recipient has opted out; the push is canceled; others may be due
	SuppressedNow                     // the address is suppressed; the push has failed; others may be due
	TooLate                           // the push had expired; it is ended; others may be due
	Again                             // the push was changed in between, or another claim came first: claim again
	Parked                            // a pause covers the push, or its campaign is held, and the push is no longer due; others may be
	Rerouted                          // the push now waits for the tenant's own channel of the same name; others may be due
	Orphaned                          // the tenant's channel was deleted; the push is canceled; others may be due
	Withdrawn                         // a bulk cancel met an earlier attempt under way; the push is canceled; others may be due
)

// Claim is the answer to a [ClaimOrder].
type Claim struct {
	Outcome    ClaimOutcome
	Push       push.Push
	Token      uuid.UUID     // identifies the attempt when it is finished
	Attempt    int           // 1, 2, …
	StartedAt  time.Time     // by Postgres' clock, like all times here
	LeaseUntil time.Time     //
	Wait       time.Duration // for Wait
	Pause      uuid.UUID     // for Parked: the pause; Nil: the campaign is held
	Now        time.Time     // the time of the claim
	Channel    int64         // the version of the tenant's own channel; 0: the push goes through the operator's
	Barred     []Due         // due pushes through channels that the order excludes, as far as they were read; of each the channel, the time and the level
	Repeated   bool          // an earlier run of the transaction has committed it: nothing is to be written
}

// Attempted identifies the attempt that a claim has begun.
func (c Claim) Attempted() Attempt {
	return Attempt{
		Push: c.Push.ID, RecipientKey: push.RecipientKey(c.Push.Tenant, c.Push.Recipient), SendAt: c.Push.SendAt,
		Token: c.Token, Number: c.Attempt, StartedAt: c.StartedAt,
	}
}

// ClaimState is the data of a recipient that a claim has read under its lock.
type ClaimState struct {
	Locked   bool            // another transaction has the lock; nothing else is known
	Due      push.Push       // the oldest due push that the order allows; without an ID: none
	Asked    bool            // a bulk cancel met an attempt of it under way
	Held     bool            // its campaign is paused or canceled
	Pause    *pause.Pause    // stops it now; nil: no pause does
	Own      OwnChannel      // the tenant's own channel of the push's name
	More     bool            // another push is due, on any channel
	Barred   []Due           // see [Claim.Barred]
	InFlight []InFlight      // running attempts
	Sends    []quota.Booking // sends that may have reached the recipient, each at the latest time when the provider can have received it
	Terms    Terms           // the tenant's own terms; without them the order's apply
	Person   Person

	Suppressed *suppression.Entry // suppresses the address of Due; nil: nothing does
}

// InFlight is a running attempt.
type InFlight struct {
	Push       push.Push
	Token      uuid.UUID
	LeaseUntil time.Time
}

// Decide returns what to do with the recipient's oldest due push. It contains the delivery gate: a push is sent only if
// the recipient's actual sends leave room for it now.
func (s *ClaimState) Decide(o ClaimOrder, now time.Time) Claim {
	c := Claim{Now: now, Barred: s.Barred}
	if s.Locked {
		c.Outcome, c.Wait = Wait, LockWait
		return c
	}
	for _, f := range s.InFlight {
		if f.Token == o.Token {
			c.Outcome, c.Push, c.Token, c.Attempt, c.Repeated = Claimed, f.Push, f.Token, f.Push.Attempts, true
			c.Channel = s.Own.Version
			c.StartedAt, c.LeaseUntil = f.LeaseUntil.Add(-o.Lease), f.LeaseUntil
			s.address(&c.Push)
			return c
		}
	}
	if s.Due.ID == uuid.Nil || len(s.InFlight) > 0 {
		return c
	}
	c.Push = s.Due
	if c.Outcome = s.route(); c.Outcome != Nothing || s.shut() {
		return c
	}
	c.Channel = s.Own.Version
	if s.Held {
		c.Outcome = Parked
		return c
	}
	if s.Pause != nil && now.Before(c.Push.ExpiresAt) {
		c.Outcome, c.Pause = Parked, s.Pause.ID
		return c
	}
	s.address(&c.Push)
	kind := KindOf(&c.Push)
	policy := OrNone(s.Terms, o.Policy).For(s.Person.Person, kind)
	free := s.gate(policy, now)
	wait := max(c.Push.NextAt.Sub(now), free.Sub(now))
	switch {
	case s.Person.OptOuts.Of(kind).Any(), c.Push.Recipient == "": // the recipient was erased meanwhile
		c.Outcome = Unwanted
	case s.Suppressed != nil:
		c.Outcome = SuppressedNow
	case !now.Before(c.Push.ExpiresAt):
		c.Outcome = TooLate
	case wait > MaxWait:
		if c.Outcome = PutOff; free.After(now) {
			c.Push.Held = s.hold(policy, now, free)
		}
		c.Push.NextAt = now.Add(wait)
	case wait > 0:
		c.Outcome, c.Wait = Wait, wait
	default:
		c.Outcome, c.Token, c.Attempt = Claimed, o.Token, c.Push.Attempts+1
		c.StartedAt, c.LeaseUntil = now, now.Add(o.Lease)
	}
	return c
}

// shut reports whether the tenant has disabled the channel of the due push meanwhile, or deletes it: the push waits.
func (s *ClaimState) shut() bool { return s.Due.Own && (s.Own.Disabled || s.Own.Deleting) }

// route returns the outcome if the due push cannot go through the channel that it was found by, or nowhere any more, or Nothing.
func (s *ClaimState) route() ClaimOutcome {
	switch {
	case s.Asked:
		return Withdrawn
	case !s.Due.Own && s.Own.Version > 0: // the tenant's channel hides the operator's
		return Rerouted
	case s.Due.Own && s.Own.Version == 0:
		return Orphaned
	}
	return Nothing
}

// address fills in the recipient's address for the channel if the push has none.
func (s *ClaimState) address(p *push.Push) {
	p.To = s.Person.AddressOf(p)
}

// gate returns when the due push may be sent: the first time from now on when the actual sends leave room for it, or
// its expiry.
func (s *ClaimState) gate(policy quota.Policy, now time.Time) time.Time {
	free, ok := policy.Next(quota.NewTimeline(s.Sends), now, 0)
	if !ok || free.After(s.Due.ExpiresAt) {
		return s.Due.ExpiresAt
	}
	return free
}

// hold returns why the due push waits until a time: of the rules that forbid it now, the one that blocks longest. A
// push that was put off until now has been held since then.
func (s *ClaimState) hold(policy quota.Policy, now, until time.Time) push.Hold {
	h := push.Hold{Since: now, Until: until}
	if old := s.Due.Held; old.Until.Equal(s.Due.NextAt) {
		h.Since = old.Since
	}
	line, longest := quota.NewTimeline(s.Sends), time.Time{}
	for _, v := range policy.Violations(line, now) {
		alone := quota.Policy{v.Rule}
		if free, ok := alone.Next(line, now, 0); h.By == "" || !ok || free.After(longest) {
			h.By, longest = v.Rule.Name, free
			if !ok {
				break
			}
		}
	}
	return h
}

// Behind returns the answer to a claim that is decided together with an earlier one for the same recipient. If both are
// for the same channel, the caller of the earlier one claims again for both.
func (o ClaimOrder) Behind(first ClaimOrder, now time.Time) Claim {
	if o.Channel != first.Channel {
		return Claim{Outcome: Again, Now: now}
	}
	return Claim{Outcome: Nothing, Now: now}
}
