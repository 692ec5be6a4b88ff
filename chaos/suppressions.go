package main

import (
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/testenv"
)

// suppressed is a recipient whose address was suppressed, and when that was answered.
type suppressed struct {
	recipient string
	from      time.Time
}

// stopped is the recipient whose address is suppressed.
const stopped = "stopped"

// address gives a recipient an address on the usual channel.
func (c *caller) address(recipient, address string) {
	a, _ := c.insist(c.b.Context(), "PUT", "/v1/recipients/"+recipient, "", object{"addresses": object{"push": address}})
	if a.status != 200 && a.status != 201 {
		c.b.Fatalf("address of %s: %d %s", recipient, a.status, a.body.Type)
	}
}

// suppress books pushes to a recipient, and suppresses the address before they are due.
func (b *bundle) suppress() {
	c := b.newCaller()
	c.address(stopped, "address-"+stopped)
	now := time.Now().Truncate(time.Second)
	for i := range 4 {
		c.submit(b.Context(), stopped, "", fmt.Sprint(stopped, i), now.Add(time.Duration(10+i)*time.Second))
	}
	a, _ := c.insist(b.Context(), "PUT", "/v1/suppressions", "", object{"channel": "push", "address": "address-" + stopped, "reason": "stop"})
	if a.status != 200 && a.status != 201 {
		b.Fatalf("suppress: %d %s", a.status, a.body.Type)
	}
	b.suppressed = append(b.suppressed, suppressed{stopped, time.Now()})
}

// suppressionsHold checks I12: after the answer, no attempt to the address begins, and nothing waits.
func (j *findings) suppressionsHold() {
	for _, s := range j.facts.suppressed {
		for id, sends := range j.facts.sends {
			for _, a := range sends {
				if j.facts.rows[id].Recipient == s.recipient && a.Started.After(s.from) {
					j.broken("I12", "attempt %d of push %s began at %s, although its address was suppressed at %s", a.Attempt, id, stamp(a.Started), stamp(s.from))
				}
			}
		}
		for id, r := range j.facts.rows {
			if r.Recipient == s.recipient && (r.Status == "scheduled" || r.Status == "sending") {
				j.broken("I12", "push %s is %s, although its address was suppressed at %s", id, r.Status, stamp(s.from))
			}
		}
	}
}

// uncanceled suppresses the addresses of pushes that wait, behind the back of the programs: only the gate keeps them from being sent.
func uncanceled(b *bundle, c *caller) {
	b.startWorker(nil)
	now := time.Now().Truncate(time.Second)
	for i := range 20 {
		recipient := fmt.Sprint("r-", i)
		c.address(recipient, "address-"+recipient)
		c.submit(b.Context(), recipient, "", "", now.Add(6*time.Second))
	}
	testenv.Exec(b, b.Database, `INSERT INTO suppressions (tenant_id, channel, address, reason, address_key, at)
		SELECT tenant_id, 'push', addresses ->> 'push', 'stop', address_keys[1], now() - interval '2 minutes' FROM recipients`)
	testenv.Exec(b, b.Database, `UPDATE tenants SET suppresses = true`)
	testenv.Sleep(b, 9*time.Second)
}

// ofSuppression reports whether a point is on the way of suppressions.
func ofSuppression(p failpoint.Point) bool { return p == failpoint.SuppressionStored }
