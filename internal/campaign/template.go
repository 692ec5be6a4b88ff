package campaign

import (
	"github.com/sendquota/sendquota/internal/liquid"
	"github.com/sendquota/sendquota/internal/push"
)

// Parse parses the template of a campaign's message.
func Parse(c *push.Campaign) (Template, error) {
	t, wrong := liquid.Parse(c.Message)
	return t, wrong.Err()
}
