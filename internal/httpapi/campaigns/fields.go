package campaigns

import (
	"encoding/json"
	"time"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/rest"
)

// maxCampaignName is in bytes.
const maxCampaignName = 128

// maxCampaignBody is larger than for a push, so that a template that is too long gets an error of its own.
const maxCampaignBody = 1 << 20

// campaignFields is the body that creates a campaign, and campaignChanges the body that changes one.
var (
	campaignFields  = rest.Table[campaign.Change]{SchemaName: "NewCampaign", Fields: campaignRows(rest.Required)}
	campaignChanges = rest.Table[campaign.Change]{SchemaName: "CampaignChange", Fields: campaignRows(rest.Optional)}
)

func campaignRows(whole bool) []rest.Field[campaign.Change] {
	return []rest.Field[campaign.Change]{
		rest.Row("name", rest.Optional, clearable(func(c *campaign.Change) **string { return &c.Name }, texts(maxCampaignName)), "A name of your choice.", "Black Friday"),
		rest.Row("message", whole, rest.AnyObject(func(c *campaign.Change, raw []byte) { m := json.RawMessage(raw); c.Message = &m }).Shaped(&pushes.MessageFields),
			"The content. Every string in it, at any depth, is a Liquid template. Its variables are the columns of the audience, including recipient and to, and then the attributes of the recipient. "+
				"The templates have at most 64 KiB; include and render are not supported.", nil),
		rest.Row("channel", rest.Optional, clearable(func(c *campaign.Change) **string { return &c.Channel }, nameds(pushes.MaxChannel)),
			"The channel that delivers it. Default: the first one that is configured.", "push"),
		rest.Row("category", rest.Optional, clearable(func(c *campaign.Change) **string { return &c.Category }, nameds(pushes.MaxCategory)),
			"A label of your choice, at most 64 printable bytes.", "marketing"),
		rest.Row("send_at", rest.Optional, clearable(func(c *campaign.Change) **time.Time { return &c.SendAt }, rest.Moment),
			"The send time, with a zone. A fraction of a second is rounded up. It replaces local_time. Default: when the campaign is started.", "2026-12-01T09:00:00+01:00"),
		rest.Row("local_time", rest.Optional, clearable(func(c *campaign.Change) **time.Time { return &c.LocalTime }, rest.LocalMoment),
			"The send time on the clocks of time_zone. It replaces send_at.", rest.LocalExample),
		rest.Row("time_zone", rest.Optional, clearable(func(c *campaign.Change) **string { return &c.TimeZone }, texts(pushes.MaxZone)),
			"The zone of local_time, an IANA name. Default: each recipient's own zone, or else the default zone of the policy.", "Asia/Tokyo"),
		rest.Row("spread", rest.Optional, clearable(func(c *campaign.Change) **time.Duration { return &c.Spread }, spans(0, campaign.MaxSpread)),
			"The time span over which the recipients are spread. Each recipient has its own second in it, which is the same in every campaign. At most a day. Default: 0s, all at once.", "30m"),
		rest.Row("on_conflict", rest.Optional, clearable(func(c *campaign.Change) **string { return &c.OnConflict }, func(set func(*campaign.Change, string)) rest.Value[campaign.Change] {
			return rest.OneOf(set, "reject", "defer")
		}), "The action for recipients whose quota has no place at that time: reject (the default), or defer to the next free time.", "defer"),
		rest.Row("latest", rest.Optional, clearable(func(c *campaign.Change) **time.Time { return &c.Latest }, rest.Moment),
			"The latest time to defer to.", "2026-12-02T20:00:00Z"),
		rest.Row("expires_after", rest.Optional, clearable(func(c *campaign.Change) **time.Duration { return &c.ExpiresAfter }, spans(time.Second, pushes.MaxExpiresAfter)),
			"The time span from its send time after which each push expires. Default: 24 hours, or as configured.", "4h"),
		rest.Row("metadata", rest.Optional, clearable(func(c *campaign.Change) **json.RawMessage { return &c.Metadata }, func(set func(*campaign.Change, json.RawMessage)) rest.Value[campaign.Change] {
			return rest.AnyObject(func(c *campaign.Change, raw []byte) { set(c, raw) })
		}), "Your own data, at most 16 KiB; it is returned with the campaign and with each of its pushes.", map[string]any{"team": "x"}),
	}
}

// clearable returns a member that null sets to its default, the zero value.
func clearable[V any](at func(*campaign.Change) **V, read func(set func(*campaign.Change, V)) rest.Value[campaign.Change]) rest.Value[campaign.Change] {
	put := func(c *campaign.Change, v V) { *at(c) = &v }
	return read(put).OrNull(func(c *campaign.Change) {
		var byDefault V
		put(c, byDefault)
	})
}

func texts(most int) func(set func(*campaign.Change, string)) rest.Value[campaign.Change] {
	return func(set func(*campaign.Change, string)) rest.Value[campaign.Change] { return rest.Text(set, 0, most) }
}

func nameds(most int) func(set func(*campaign.Change, string)) rest.Value[campaign.Change] {
	return func(set func(*campaign.Change, string)) rest.Value[campaign.Change] { return rest.Named(set, 0, most) }
}

func spans(least, most time.Duration) func(set func(*campaign.Change, time.Duration)) rest.Value[campaign.Change] {
	return func(set func(*campaign.Change, time.Duration)) rest.Value[campaign.Change] {
		return rest.Span(set, least, most)
	}
}

// readCampaign reads the change of a campaign; old is the zero value for a new one. It returns all errors in the form of
// the request. If there are any, it adds all other errors.
func (h *campaigns) readCampaign(c *rest.Call, of *rest.Table[campaign.Change], old broadcast.Campaign, bad *rest.FieldErrors) (change campaign.Change, body []byte, err error) {
	var found rest.FieldErrors
	body, err = c.Object(maxCampaignBody, bad, func(r *rest.Reader) { of.Read(r, &change, &found) })
	if err != nil {
		return change, nil, err
	}
	if len(bad.List)+len(found.List) > 0 {
		if err := findAllFaults(c, h.svc, change, old, &found); err != nil {
			return change, nil, err
		}
	}
	bad.AddAll("body", found)
	return change, body, bad.Err()
}

// findAllFaults adds the errors of the readable members of a change, so that callers get all errors at once.
func findAllFaults(c *rest.Call, svc *campaign.Service, change campaign.Change, old broadcast.Campaign, found *rest.FieldErrors) error {
	unread := *found
	old.Tenant = c.Caller.Tenant // a new draft has none yet
	return c.Compute(func() error {
		for _, one := range svc.Check(change, old) {
			if !unread.Has(one.Field) {
				found.Keep(one)
			}
		}
		return nil
	})
}
