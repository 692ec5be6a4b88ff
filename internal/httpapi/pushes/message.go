package pushes

import (
	"context"

	"github.com/sendquota/sendquota/internal/liquid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// showMessage is showMessages for one push, in the tenant's turn. Without a turn, the message stays as it was booked, because the
// request itself has succeeded.
func showMessage(c *rest.Call, p *push.Push) {
	if p.Rendering != nil {
		_ = c.Compute(func() error {
			p.Message = messageOf(p)
			return nil
		})
	}
}

// showMessages renders messages that contain the time of sending, as they were last sent or will be sent. The caller has a turn
// for computing. After the request has ended, messages stay as they were booked.
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
