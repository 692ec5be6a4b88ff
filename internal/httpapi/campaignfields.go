package httpapi

import (
	"encoding/json"
	"time"

	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/push"
)

// maxCampaignName is in bytes.
const maxCampaignName = 128

// maxCampaignBody is more than a push may have, so that a template that is too long gets a fault that says so.
const maxCampaignBody = 1 << 20

// campaignFields is the body that makes a campaign, and campaignChanges the one that changes some of it.
var (
	campaignFields  = table[campaign.Change]{schemaName: "NewCampaign", fields: campaignRows(required)}
	campaignChanges = table[campaign.Change]{schemaName: "CampaignChange", fields: campaignRows(optional)}
)

func campaignRows(whole bool) []field[campaign.Change] {
	return []field[campaign.Change]{
		row("name", optional, clearable(func(c *campaign.Change) **string { return &c.Name }, texts(maxCampaignName)), "A name of your choice.", "Black Friday"),
		row("message", whole, anyObject(func(c *campaign.Change, raw []byte) { m := json.RawMessage(raw); c.Message = &m }).shaped(&messageFields),
			"The content. Every string in it, at any depth, is a Liquid template. Its variables are the columns of the audience, including recipient and to, and then the attributes of the recipient. "+
				"The templates have at most 64 KiB; include and render are not supported.", nil),
		row("channel", optional, clearable(func(c *campaign.Change) **string { return &c.Channel }, nameds(maxChannel)),
			"The channel that delivers it. Default: the first one that is configured.", "push"),
		row("category", optional, clearable(func(c *campaign.Change) **string { return &c.Category }, nameds(maxCategory)),
			"A label of your choice, at most 64 printable bytes.", "marketing"),
		row("send_at", optional, clearable(func(c *campaign.Change) **time.Time { return &c.SendAt }, moment),
			"The send time, with a zone. A fraction of a second is rounded up. It replaces local_time. Default: when the campaign is started.", "2026-12-01T09:00:00+01:00"),
		row("local_time", optional, clearable(func(c *campaign.Change) **time.Time { return &c.LocalTime }, localMoment),
			"The send time on the clocks of time_zone. It replaces send_at.", localExample),
		row("time_zone", optional, clearable(func(c *campaign.Change) **string { return &c.TimeZone }, texts(maxZone)),
			"The zone of local_time, an IANA name. Default: each recipient's own zone, or else the default zone of the policy.", "Asia/Tokyo"),
		row("spread", optional, clearable(func(c *campaign.Change) **time.Duration { return &c.Spread }, spans(0, campaign.MaxSpread)),
			"The time span over which the recipients are spread. Each recipient has its own second in it, which is the same in every campaign. At most a day. Default: 0s, all at once.", "30m"),
		row("on_conflict", optional, clearable(func(c *campaign.Change) **string { return &c.OnConflict }, func(set func(*campaign.Change, string)) value[campaign.Change] {
			return oneOf(set, "reject", "defer")
		}), "The action for recipients whose quota has no place at that time: reject (the default), or defer to the next free time.", "defer"),
		row("latest", optional, clearable(func(c *campaign.Change) **time.Time { return &c.Latest }, moment),
			"The latest time to defer to.", "2026-12-02T20:00:00Z"),
		row("expires_after", optional, clearable(func(c *campaign.Change) **time.Duration { return &c.ExpiresAfter }, spans(time.Second, maxExpiresAfter)),
			"The time span from its send time after which each push expires. Default: 24 hours, or as configured.", "4h"),
		row("metadata", optional, clearable(func(c *campaign.Change) **json.RawMessage { return &c.Metadata }, func(set func(*campaign.Change, json.RawMessage)) value[campaign.Change] {
			return anyObject(func(c *campaign.Change, raw []byte) { set(c, raw) })
		}), "Your own data, at most 16 KiB; it is returned with the campaign and with each of its pushes.", map[string]any{"team": "x"}),
	}
}

// clearable is a member that null sets to its default, which is the zero value.
func clearable[V any](at func(*campaign.Change) **V, read func(set func(*campaign.Change, V)) value[campaign.Change]) value[campaign.Change] {
	put := func(c *campaign.Change, v V) { *at(c) = &v }
	return read(put).orNull(func(c *campaign.Change) {
		var byDefault V
		put(c, byDefault)
	})
}

func texts(most int) func(set func(*campaign.Change, string)) value[campaign.Change] {
	return func(set func(*campaign.Change, string)) value[campaign.Change] { return text(set, 0, most) }
}

func nameds(most int) func(set func(*campaign.Change, string)) value[campaign.Change] {
	return func(set func(*campaign.Change, string)) value[campaign.Change] { return named(set, 0, most) }
}

func spans(least, most time.Duration) func(set func(*campaign.Change, time.Duration)) value[campaign.Change] {
	return func(set func(*campaign.Change, time.Duration)) value[campaign.Change] { return span(set, least, most) }
}

// readCampaign reads the change of a campaign, which is the zero one if it is new. It returns all that is wrong with the form of
// the request, and then also what else is wrong.
func (h *campaigns) readCampaign(c *call, of *table[campaign.Change], old push.Campaign, bad *fieldErrors) (change campaign.Change, body []byte, err error) {
	var found fieldErrors
	body, err = c.object(maxCampaignBody, bad, func(r *reader) { of.read(r, &change, &found) })
	if err != nil {
		return change, nil, err
	}
	if len(bad.list)+len(found.list) > 0 {
		if err := findAllFaults(c, h.svc, change, old, &found); err != nil {
			return change, nil, err
		}
	}
	bad.addAll("body", found)
	return change, body, bad.err()
}

// findAllFaults adds what is wrong with the members of a change that could be read: callers get all faults at once.
func findAllFaults(c *call, svc *campaign.Service, change campaign.Change, old push.Campaign, found *fieldErrors) error {
	unread := *found
	return c.compute(func() error {
		for _, one := range svc.Check(change, old) {
			if !unread.has(one.Field) {
				found.keep(one)
			}
		}
		return nil
	})
}
