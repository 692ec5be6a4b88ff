package config

import "time"

// The types of channels.
const (
	Webhook = "webhook" // posts to a URL
	SMS     = "sms"     // text messages through Twilio
	Email   = "email"   // over SMTP
	FCM     = "fcm"     // notifications through Firebase Cloud Messaging
	APNs    = "apns"    // notifications through Apple's service
	Log     = "log"     // writes to the log of the worker
)

// What OnUnknown may be.
const (
	Retry = "retry" // deliver again: at least once
	Fail  = "fail"  // give up: at most once
)

// Channel is a way out. Of the settings that belong to a type, only those of its
// own are filled in.
type Channel struct {
	Name                  string
	Type                  string        // Webhook, SMS, Email, FCM, APNs or Log
	Timeout               time.Duration // of one attempt; at most half of Delivery.Lease
	AllowPrivateAddresses bool          // may it go to loopback and private networks
	OnUnknown             string        // after an attempt of unknown outcome: Retry or Fail
	MaxAttempts           int           // at least 1
	Backoff               Backoff
	Throughput            Throughput

	Webhook WebhookSettings
	SMS     SMSSettings
	Email   EmailSettings
	FCM     FCMSettings
	APNs    APNsSettings
}

// Backoff is the wait before another attempt: it doubles from First up to Max.
type Backoff struct {
	First, Max time.Duration
}

// Throughput is the speed that a provider can take, of all workers together:
// Rate attempts Per time, evenly spaced, but for Burst at once after a rest. All
// zero: any speed.
type Throughput struct {
	Rate  int
	Per   time.Duration
	Burst int
}

// fields are the settings of every channel.
func (c *Channel) fields() []field {
	return []field{
		{"type", required, "webhook, sms, email, fcm, apns or log", oneOf(&c.Type, Webhook, SMS, Email, FCM, APNs, Log)},
		{"timeout", "10s", "of one attempt; at most half of delivery.lease, to which the default gives way", duration(&c.Timeout, 1, forever)},
		{"allow_private_addresses", "false", "whether it may go to loopback and private networks", boolean(&c.AllowPrivateAddresses)},
		{"on_unknown", "retry", "after an attempt of unknown outcome: retry (may deliver twice) or fail (may not deliver)", oneOf(&c.OnUnknown, Retry, Fail)},
		{"max_attempts", "8", "attempts before a push fails, 1 to 100", integer(&c.MaxAttempts, 1, 100)},
		{"backoff", "{}", "the wait before another attempt", object(&c.Backoff)},
		{"throughput", optional, "the speed that the provider can take, over all workers; without it, any", object(&c.Throughput)},
	}
}

func (b *Backoff) fields() []field {
	return []field{
		{"first", "5s", "the first wait; each further one is twice as long", duration(&b.First, 1, forever)},
		{"max", "15m", "the longest wait", duration(&b.Max, 1, forever)},
	}
}

func (t *Throughput) fields() []field {
	return []field{
		{"rate", required, "attempts per time span, at most 1000000 a second", integer(&t.Rate, 1, manyPerSpan)},
		{"per", "1s", "the time span, 1µs at least", duration(&t.Per, time.Microsecond, forever)},
		{"burst", "1", "attempts at once after a rest; otherwise they are evenly spaced", integer(&t.Burst, 1, manyPerSpan)},
	}
}

// check refuses what the pacer can not keep, which counts in microseconds.
func (t *Throughput) check(p place) {
	if most := t.Per.Microseconds(); most > 0 && int64(t.Rate) > most {
		p.child("rate").fault("must be at most 1000000 a second, which is %d per %s", most, short(t.Per))
	}
}

// channels reads a mapping with a channel under each name, and keeps its order.
func channels(to *[]Channel) reader {
	return reader{step: ".NAME", fields: new(Channel).everything(), into: func(p place) {
		if !p.isMapping("from names to channels") {
			return
		}
		entries := p.children()
		if len(entries) == 0 {
			p.fault("must have at least one channel; leave the key out for the default")
		}
		*to = make([]Channel, len(entries))
		for i, entry := range entries {
			channel := &(*to)[i]
			channel.Name = entry.name
			if !nameShape.MatchString(channel.Name) {
				entry.refuse("the name of a channel must be 1 to 64 of a-z, 0-9, - and _")
			}
			channel.read(entry)
		}
	}}
}

func (b *Backoff) check(p place) {
	if b.First == 0 || b.Max == 0 || b.First <= b.Max {
		return
	}
	if first := p.child("first"); first.given() {
		first.fault("must be at most backoff.max, which is %s", short(b.Max))
		return
	}
	p.child("max").fault("must be at least backoff.first, which is %s", short(b.First))
}
