package config

import (
	"slices"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/strictyaml"
)

// The types of channels.
const (
	Webhook = "webhook" // posts to a URL
	SMS     = "sms"     // text messages through Twilio
	Email   = "email"   // over SMTP
	FCM     = "fcm"     // notifications through Firebase Cloud Messaging
	APNs    = "apns"    // notifications through Apple's service
	Log     = "log"     // writes to the log of the worker
)

// The units of Throughput.
const (
	Messages = "messages"
	Segments = "segments" // of a text message
)

// The values of OnUnknown.
const (
	Retry = "retry" // deliver again: at least once
	Fail  = "fail"  // give up: at most once
)

// Channel has the settings of a channel. Only the settings of its own type are filled in.
type Channel struct {
	Name                  string
	Type                  string        // Webhook, SMS, Email, FCM, APNs or Log
	Timeout               time.Duration // of one attempt; at most half of Delivery.Lease
	AllowPrivateAddresses bool          // permits loopback and private networks
	OnUnknown             string        // after an attempt with an unknown outcome: Retry or Fail
	MaxAttempts           int           // at least 1
	Backoff               Backoff
	Throughput            Throughput
	Levels                Levels
	OfferedTo             []string // names of tenants; nil: all
	Disabled              bool     // of a tenant's channel: its pushes wait

	Webhook WebhookSettings
	SMS     SMSSettings
	Email   EmailSettings
	FCM     FCMSettings
	APNs    APNsSettings

	Own *TenantChannels // bounds of a tenant's channel; nil: the channel is the operator's
}

// Backoff is the wait before another attempt: it doubles from First up to Max.
type Backoff struct {
	First, Max time.Duration
}

// Levels are the shares of the service levels in what a channel with a Throughput sends while pushes wait for it.
type Levels struct {
	Urgent, Normal, Bulk int // 1 to 100
}

// Throughput is the speed of a channel over all workers: Rate attempts Per time, evenly spaced, with Burst attempts at once
// after a rest. In the unit Segments, an attempt counts as often as its text has segments. The zero value is no limit.
type Throughput struct {
	Rate  int
	Per   time.Duration
	Burst int
	Unit  string // Messages or Segments
}

func (c *Channel) nameOf() *string { return &c.Name }

func (c *Channel) settings(t *strictyaml.Table) {
	t.Switch("type", "webhook, sms, email, fcm, apns or log", &c.Type, c.cases())
	c.common(t)
	t.Strings("offered_to", optional, "the names of the tenants that may use it; without it, all", &c.OfferedTo)
	t.Check(func(p strictyaml.Node) {
		for i, tenant := range c.OfferedTo {
			switch {
			case tenant == "":
				p.Child("offered_to").Item(i).BadValue("must be the name of a tenant")
			case slices.Index(c.OfferedTo, tenant) < i:
				p.Child("offered_to").Item(i).BadValue("is listed twice")
			}
		}
	})
}

// cases lists the settings of each type.
func (c *Channel) cases() strictyaml.Cases {
	return strictyaml.Cases{{Webhook, c.webhook}, {SMS, c.sms}, {Email, c.email}, {FCM, c.fcm}, {APNs, c.apns}, {Log, nil}}
}

// common lists the settings of all types.
func (c *Channel) common(t *strictyaml.Table) {
	t.Duration("timeout", "10s", "time-out of one attempt, at most half of delivery.lease; the default is lowered to that", &c.Timeout, 1, forever)
	private := "false"
	if c.Own != nil && c.Own.AllowPrivateAddresses {
		private = "true"
	}
	t.Bool("allow_private_addresses", private, "whether it may connect to loopback and private networks", &c.AllowPrivateAddresses)
	t.OneOf("on_unknown", "retry", "after an attempt with an unknown outcome: retry (may deliver twice) or fail (may not deliver)", &c.OnUnknown, Retry, Fail)
	t.Int("max_attempts", "8", "attempts before a push fails, 1 to 100", &c.MaxAttempts, 1, 100)
	t.Section("backoff", "{}", "the wait before another attempt", func(t *strictyaml.Table) {
		if c.Own != nil {
			c.Backoff.settings(t, 10*time.Millisecond) // a provider that refuses all must not keep the workers busy
			return
		}
		c.Backoff.settings(t, 1)
	})
	t.Section("throughput", optional, "the maximum speed over all workers; without it, no maximum", c.Throughput.settings)
	t.Check(c.segmented)
	t.Section("levels", "{}", "the shares of the service levels while pushes wait for the speed of the channel; what one does not use goes to the others", c.Levels.settings)
}

// settings lists the settings of a backoff, whose waits are at least as long as least.
func (b *Backoff) settings(t *strictyaml.Table, least time.Duration) {
	t.Duration("first", "5s", "the first wait; each further one is twice as long; a tenant's channel: at least 10ms", &b.First, least, forever)
	t.Duration("max", "15m", "the longest wait; a tenant's channel: at least 10ms", &b.Max, least, forever)
	t.Check(b.check)
}

func (l *Levels) settings(t *strictyaml.Table) {
	t.Int("urgent", "70", "the share of urgent pushes, 1 to 100", &l.Urgent, 1, 100)
	t.Int("normal", "20", "the share of normal pushes, 1 to 100", &l.Normal, 1, 100)
	t.Int("bulk", "10", "the share of bulk pushes, 1 to 100", &l.Bulk, 1, 100)
}

func (s *Throughput) settings(t *strictyaml.Table) {
	t.Int("rate", required, "attempts per time span, at most 1000000 a second", &s.Rate, 1, manyPerSpan)
	t.Duration("per", "1s", "the time span, 1 microsecond to 31 days", &s.Per, time.Microsecond, longestSpan)
	t.Int("burst", "1", "attempts at once after a rest; otherwise they are evenly spaced; the rest takes at most 31 days", &s.Burst, 1, manyPerSpan)
	t.OneOf("unit", Messages, "what rate counts: messages, or segments of text messages (sms only): a text of n segments counts n times", &s.Unit, Messages, Segments)
	t.Check(s.check)
}

// longestSpan is the longest time span of a speed, and the longest rest before a burst. The pacer computes exactly with times of
// some hundred years.
const longestSpan = 31 * 24 * time.Hour

// check rejects a speed above one attempt a microsecond, the unit of the pacer, and a burst that needs too long a rest.
func (s *Throughput) check(p strictyaml.Node) {
	if most := float64(longestSpan) / float64(s.Per) * float64(s.Rate); s.Per > 0 && s.Rate > 0 && float64(s.Burst) > most {
		p.Child("burst").BadValue("must be at most %.0f: so many are sent in 31 days", most)
	}
	if most := s.Per.Microseconds(); most > 0 && int64(s.Rate) > most {
		p.Child("rate").BadValue("must be at most 1000000 a second, which is %d per %s", most, duration.Each(s.Per))
	}
}

// segmented rejects the unit of the throughput for channels that send no text messages.
func (c *Channel) segmented(p strictyaml.Node) {
	if unit := p.Find("throughput.unit"); unit.Given() && c.Type != SMS && c.Throughput.Unit == Segments {
		unit.BadKey("is not for type %s", c.Type)
	}
}

// encrypted rejects a URL that would send secrets over the open network without encryption.
func (c *Channel) encrypted(setting string, url *string) func(strictyaml.Node) {
	return func(p strictyaml.Node) {
		if *url != "" && !strings.HasPrefix(*url, "https:") && !c.AllowPrivateAddresses {
			p.Child(setting).BadValue("must begin with https://, unless allow_private_addresses is true")
		}
	}
}

func (b *Backoff) check(p strictyaml.Node) {
	if b.First == 0 || b.Max == 0 || b.First <= b.Max {
		return
	}
	if first := p.Child("first"); first.Given() {
		first.BadValue("must be at most backoff.max, which is %s", duration.Words(b.Max))
		return
	}
	p.Child("max").BadValue("must be at least backoff.first, which is %s", duration.Words(b.First))
}

// Offered reports whether the operator offers the channel to a tenant.
func (c *Channel) Offered(tenant string) bool {
	return c.OfferedTo == nil || slices.Contains(c.OfferedTo, tenant)
}
