package delivery

import (
	"sync"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/push"
)

// outcomes counts the outcomes of attempts, until the reporter takes the counts.
type outcomes struct {
	mu     sync.Mutex
	counts map[outcomeKey]channelhealth.Outcomes
}

type outcomeKey struct {
	tenant  uuid.UUID
	channel string
}

// note counts an attempt. A refusal that concerns one address, such as an unregistered one, does not count as a
// refusal, and a request for a pause does not count as a failure, because the channel pauses.
func (o *outcomes) note(channelName string, tenant uuid.UUID, r channel.Result) {
	one := channelhealth.Outcomes{Tenant: tenant, Channel: channelName, Attempts: 1}
	switch {
	case r.Down || r.Outcome == push.Unknown:
		one.Failed = 1
	case r.Outcome != push.Refused || r.OneAddress:
	case r.Final:
		one.Rejected = 1
	case r.RetryAfter == 0:
		one.Failed = 1
	}
	o.add(one)
}

// add adds counts. They are bounded: one for each tenant and channel.
func (o *outcomes) add(counts ...channelhealth.Outcomes) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.counts == nil {
		o.counts = map[outcomeKey]channelhealth.Outcomes{}
	}
	for _, c := range counts {
		key := outcomeKey{c.Tenant, c.Channel}
		known := o.counts[key]
		c.Attempts, c.Rejected, c.Failed = c.Attempts+known.Attempts, c.Rejected+known.Rejected, c.Failed+known.Failed
		o.counts[key] = c
	}
}

// take returns all counts, and resets them.
func (o *outcomes) take() (counts []channelhealth.Outcomes) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.counts {
		counts = append(counts, c)
	}
	o.counts = nil
	return counts
}
