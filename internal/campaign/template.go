package campaign

import (
	"github.com/sendquota/sendquota/internal/liquid"
	"github.com/sendquota/sendquota/internal/push"
)

// Liquid makes the template of a campaign's message. It was checked when the campaign was drafted.
func Liquid(c push.Campaign) (Template, error) {
	m, bad := liquid.Parse(c.Message)
	return m, bad.Err()
}
