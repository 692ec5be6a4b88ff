package schedule

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/sms"
)

// OwnChannels has the channels of tenants.
type OwnChannels interface {
	Names(tenant uuid.UUID) []string // the first is the default; callers must not change the list
	Check(tenant uuid.UUID, channel, to string, message json.RawMessage) invalid.FieldErrors
	Size(tenant uuid.UUID, channel string, message json.RawMessage) (size sms.Size, is bool) // see [Config.TextSize]
	Problem(tenant uuid.UUID, channel string) (text string, since time.Time)                 // why its pushes wait; "": they do not
	changing
}

// changing knows of changes by other processes.
type changing interface {
	OwnOnly(tenant uuid.UUID, channel string) bool // the operator offers the tenant no channel of that name
	Refresh(tenant uuid.UUID)                      // has the tenant's channels read again
}

// channelsOf lists the channels of a tenant. The first is the default.
func (c *Config) channelsOf(tenant uuid.UUID) []string {
	if c.Own != nil {
		return c.Own.Names(tenant)
	}
	return c.Channels
}

// firstOf returns the default channel of a tenant; "": it has none.
func (c *Config) firstOf(tenant uuid.UUID) string {
	names := c.channelsOf(tenant)
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// checkFor is a [messageCheck].
func (c *Config) checkFor(tenant uuid.UUID, channel, to string, message json.RawMessage) invalid.FieldErrors {
	switch {
	case c.Own != nil:
		return c.Own.Check(tenant, channel, to, message)
	case c.Check != nil:
		return c.Check(channel, to, message)
	}
	return nil
}

// checkMessage returns what a channel's provider would refuse about the message of a check, if it has one. It needs no address.
func (c *Config) checkMessage(tenant uuid.UUID, channel, to string, message json.RawMessage) (bad invalid.FieldErrors) {
	if message == nil {
		return nil
	}
	_, bad = withoutAddress(c.checkFor(tenant, channel, to, message))
	return bad
}

// TextSize returns the size of the text that a tenant's channel would send, and whether it sends text messages.
func (pl *Planner) TextSize(tenant uuid.UUID, channel string, message json.RawMessage) (size sms.Size, is bool) {
	switch {
	case pl.cfg.Own != nil:
		return pl.cfg.Own.Size(tenant, channel, message)
	case pl.cfg.TextSize != nil:
		return pl.cfg.TextSize(channel, message)
	}
	return size, false
}
