package quota

import (
	"context"
	"sync"
	"time"
)

// maxDebts bounds how many recipients are remembered while Redis is away.
const maxDebts = 100_000

// debts are the recipients whose ledger may be wrong, because Redis could not
// be told of a change. Until Redis has dropped them, they count as cold. If
// they become too many, all recipients do, until every ledger of now has
// expired.
type debts struct {
	mu     sync.Mutex
	owed   map[Recipient]uint64 // with a number that grows
	last   uint64
	paying bool
	all    time.Time // until then everybody is cold
}

// owe notes that the ledgers of recipients may be wrong, and sees to it that
// they are dropped.
func (l *Ledger) owe(rs ...Recipient) {
	d := &l.debts
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.owed)+len(rs) > maxDebts {
		d.owed, d.all = nil, l.now().Add(l.cfg.TTL)
		return
	}
	if d.owed == nil {
		d.owed = map[Recipient]uint64{}
	}
	for _, r := range rs {
		d.last++
		d.owed[r] = d.last
	}
	if !d.paying {
		d.paying = true
		go l.pay()
	}
}

// owes reports whether what Redis knows of a recipient is not to be believed.
func (l *Ledger) owes(r Recipient) bool {
	d := &l.debts
	d.mu.Lock()
	defer d.mu.Unlock()
	_, owed := d.owed[r]
	return owed || l.now().Before(d.all)
}

// pay tries to drop the ledgers that may be wrong until it has succeeded, or
// they have expired by themselves.
func (l *Ledger) pay() {
	for until := time.Now().Add(l.cfg.TTL); ; {
		time.Sleep(l.cfg.Pause)
		rs, last := l.debts.list()
		if len(rs) > 0 && time.Now().Before(until) && l.drop(rs) != nil {
			continue
		}
		if l.debts.paid(last) {
			return
		}
		until = time.Now().Add(l.cfg.TTL)
	}
}

// list returns who is owed, and the number of the latest of them.
func (d *debts) list() ([]Recipient, uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	rs := make([]Recipient, 0, len(d.owed))
	for r := range d.owed {
		rs = append(rs, r)
	}
	return rs, d.last
}

// paid strikes out all up to a number, and reports whether nobody is left.
func (d *debts) paid(last uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for r, n := range d.owed {
		if n <= last {
			delete(d.owed, r)
		}
	}
	d.paying = len(d.owed) > 0
	return !d.paying
}

// drop deletes ledgers.
func (l *Ledger) drop(rs []Recipient) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.Timeout)
	defer cancel()
	pipe := l.rdb.Pipeline()
	for _, r := range rs {
		pipe.Del(ctx, keys(r)...)
	}
	_, err := pipe.Exec(ctx)
	return err
}
