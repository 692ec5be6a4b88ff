package pace

import (
	"context"
	_ "embed"
	"time"

	"github.com/sendquota/sendquota/internal/redisscript"
)

var (
	//go:embed charge.lua
	chargeSource string
	chargeScript = redisscript.NewScript(chargeSource)
)

// Charge takes n more of a channel's next slots, for an attempt that takes more than the one that the worker has taken for
// it: the next ones of all workers come later by that. It never fails. If Redis does not answer, this worker pays when it
// takes its next slot; for a slot of its own share, it leaves out so many of them.
func (p *Pacer) Charge(ctx context.Context, channel string, s Speed, n int) {
	p.mu.Lock()
	if p.sharing[channel] {
		p.skip(channel, s, n)
		p.mu.Unlock()
		return
	}
	p.owed[channel] += n
	p.mu.Unlock()
	if max(p.redis.Left(), p.quietFor()) > 0 {
		return
	}
	prefix, err := p.prefix()
	if err != nil {
		return
	}
	call, owed, sent := p.repayment(prefix, channel, s)
	answers, err := p.ask(ctx, call)
	p.repaid(slotsKey(prefix, channel, s), channel, owed, sent, answers, err)
}

// skip leaves out n slots of this worker's share. The caller has the lock.
func (p *Pacer) skip(channel string, s Speed, n int) {
	last := p.shares[channel]
	if now := time.Now(); last.Before(now.Add(-p.among.turn(s))) {
		last = now
	}
	p.shares[channel] = last.Add(time.Duration(n) * p.among.turn(s))
}

// repayment returns a call that charges all slots that this worker owes. [Pacer.repaid] ends it.
func (p *Pacer) repayment(prefix, channel string, s Speed) (call redisscript.Call, owed int, sent time.Time) {
	key := slotsKey(prefix, channel, s)
	longest, known, sent := p.before(key, s)
	p.mu.Lock()
	owed = p.owed[channel]
	delete(p.owed, channel)
	p.mu.Unlock()
	return chargeScript.Call([]string{key}, s.Every.Microseconds(), s.Burst, owed, longest.Microseconds(), known), owed, sent
}

// repaid notes until when all slots are used up, or after an error, that the worker still owes its slots. Redis may have
// charged them even so: then they are charged twice, and the channel is slower for a moment.
func (p *Pacer) repaid(key, channel string, owed int, sent time.Time, answers [][]int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.owed[channel] += owed
		return
	}
	if until := sent.Add(micros(answers[0][0])); until.After(p.taken[key]) {
		p.taken[key] = until
	}
}
