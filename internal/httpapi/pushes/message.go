package pushes

import (
	"context"

	"github.com/sendquota/sendquota/internal/liquid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// showMessage is showMessages of one push, in a turn of the tenant at computing. Without a turn the message stays as it was booked: what
// the request asked for is done.
func showMessage(c *rest.Call, p *push.Push) {
	if p.Rendering != nil {
		_ = c.Compute(func() error {
			p.Message = messageOf(p)
			return nil
		})
	}
}

// showMessages makes the messages that have the time of sending in them, as they were sent last, or are to be sent. The caller has a turn
// at computing. Once the request has ended, messages stay as they were booked.
func showMessages(ctx context.Context, all []push.Push) {
	for i := range all {
		if all[i].Rendering != nil && ctx.Err() == nil {
			all[i].Message = messageOf(&all[i])
		}
	}
}

func messageOf(p *push.Push) []byte {
	at := p.NextAt
	switch {
	case len(p.Sends) > 0 && p.Status != push.Scheduled:
		at = p.Sends[len(p.Sends)-1].StartedAt
	case p.Status == push.Sent || p.Status == push.Failed:
		at = p.UpdatedAt
	}
	message, err := liquid.Again(p.Rendering, at)
	if err != nil {
		return p.Message
	}
	return message
}
