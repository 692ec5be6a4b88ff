package records

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

const channelsPath = "/v1/channels"

// Channels lists the channels in their configured order, and reads their states. The first one is the default.
type Channels struct {
	List  []Channel
	Store channelStore
	Of    func(tenant uuid.UUID) []Channel // the tenant's channels, which may be its own; nil: all have List
	Own   TenantChannels

	// Segments returns the segments of the text that a tenant's own channel would send, or the operator's for uuid.Nil; 0: it sends
	// no text message. nil: no channel does.
	Segments func(tenant uuid.UUID, channel string, message json.RawMessage) int
}

// TenantChannels bounds the channels that a tenant makes.
type TenantChannels struct {
	Max                   int      `json:"max" doc:"The maximum number of your own channels. 0: you can make none."`
	Types                 []string `json:"types" doc:"The types that they can have."`
	AllowPrivateAddresses bool     `json:"allow_private_addresses" doc:"Whether they can connect to loopback and private networks."`
}

// of lists a tenant's channels.
func (c *Channels) of(tenant uuid.UUID) []Channel {
	if c.Of != nil {
		return c.Of(tenant)
	}
	return c.List
}

// Channel is a configured channel.
type Channel struct {
	Name, Type string
	Own        bool   // the tenant has made it
	Problem    string // of an own channel: why it sends nothing; empty: nothing is wrong
	Rate       int    // attempts in the span Per, of all workers and tenants; 0: any number
	Per        time.Duration
	Burst      int
	Unit       string      // what Rate counts: messages or segments
	Shares     push.Shares // of the service levels
}

// every returns the time that the channel's speed allows for a message or a segment; 0: any number may leave at once.
func (c Channel) every() time.Duration {
	if c.Rate == 0 {
		return 0
	}
	return c.Per / time.Duration(c.Rate)
}

// segmented reports whether the channel's speed counts segments of texts.
func (c Channel) segmented() bool { return c.Rate > 0 && c.Unit == "segments" }

// channelStore reads the state of channels.
type channelStore interface {
	ChannelHealth(ctx context.Context, tenant uuid.UUID) (channelhealth.Report, error)
	ChannelBacklogs(ctx context.Context, channels []string) (map[string][]channelhealth.Backlog, error)
	WaitingMessages(ctx context.Context, tenant uuid.UUID, channel string) (channelhealth.Sample, error)
}

// channelView is a channel as the API shows it.
type channelView struct {
	Name       string              `json:"name"`
	Owner      string              `json:"owner" enum:"operator,tenant" doc:"tenant: you have made the channel; it hides the operator's of that name. /v1/channels/{name} shows its settings."`
	Type       string              `json:"type" enum:"webhook,sms,email,fcm,apns,log"`
	Default    bool                `json:"default" doc:"true: the channel of pushes that name none."`
	Problem    *string             `json:"problem" nullable:"true" doc:"Why your own channel sends nothing, such as: it is disabled. Its pushes wait. null: nothing is wrong with its settings."`
	State      channelhealth.State `json:"state" enum:"working,trying,paused,rejecting,failing,unknown" doc:"The worst state that a worker reports for your pushes. failing: too many attempts in a row found the provider down, and no attempt is made until a pause ends; or more than a fifth of at least twenty of your attempts in the last five minutes found it down, or were refused temporarily. rejecting: attempts are made, and more than a fifth of at least twenty were refused permanently, for other reasons than a single address. paused: the provider asked for a pause, or sending is paused: see pause_id. trying: a few attempts at a time, after a pause. unknown: no worker has reported recently."`
	Until      *string             `json:"until" format:"date-time" nullable:"true" doc:"The end of the pause; null: there is none."`
	PauseID    *string             `json:"pause_id" format:"uuid" nullable:"true" doc:"The pause that stops all your sending through the channel (/v1/pauses): of everything, or of the channel. null: there is none. A pause of a category or a campaign shows in paused alone."`
	AsOf       *string             `json:"as_of" format:"date-time" nullable:"true" doc:"When a worker last reported the state; null: unknown."`
	Throughput *throughputView     `json:"throughput,omitempty" doc:"The maximum rate of attempts through the channel: of all tenants together through the operator's, of you alone through your own; absent: no limit."`
	Waiting    int                 `json:"waiting" doc:"Your pushes that are due and are not being sent. Those that a pause of sending holds count in paused instead."`
	Paused     int                 `json:"paused" doc:"Your due pushes that a pause of sending holds. They wait until it ends."`
	Levels     []levelView         `json:"levels" doc:"Your waiting pushes by service level, the most urgent first."`
	LastMinute lastMinuteView      `json:"last_minute"`
	LastFive   lastFiveView        `json:"last_five_minutes"`
}

type throughputView struct {
	Rate  int    `json:"rate"`
	Per   string `json:"per" doc:"The time span."`
	Burst int    `json:"burst" doc:"The number of attempts that may begin at once after a rest."`
	Unit  string `json:"unit" enum:"messages,segments" doc:"What rate counts. segments: a text message counts as often as it has segments."`
}

// levelView shows a tenant's pushes of one service level that wait for a channel.
type levelView struct {
	Level       string  `json:"level" enum:"urgent,normal,bulk"`
	Waiting     int     `json:"waiting" doc:"Your pushes of this level that are due and are not being sent."`
	Paused      int     `json:"paused" doc:"Your due pushes of this level that a pause of sending holds."`
	OldestDueAt *string `json:"oldest_due_at" format:"date-time" nullable:"true" doc:"Since when the first of them is due; null: none waits."`
	DrainedAt   *string `json:"drained_at" format:"date-time" nullable:"true" doc:"An estimate of when the last of them leaves, if nothing else comes and no attempt fails: by the throughput of the channel, its pause, and what waits for it now. null: none waits, or the channel has no throughput."`
}

// lastMinuteView counts attempts.
type lastMinuteView struct {
	Delivered int `json:"delivered"`
	Refused   int `json:"refused"`
	Unknown   int `json:"unknown"`
}

// lastFiveView counts the attempts that decide whether a channel is rejecting or failing.
type lastFiveView struct {
	Attempts int `json:"attempts" doc:"Your attempts that ended, on all workers. The last few seconds may be missing."`
	Rejected int `json:"rejected" doc:"Attempts that were refused permanently. Refusals of a single address, for example an unregistered one, do not count."`
	Failed   int `json:"failed" doc:"Attempts that found the provider down, got no answer, or were refused temporarily, for other reasons than a single address and without a request for a pause."`
}

type channelsView struct {
	Channels       []channelView  `json:"channels" doc:"The operator's, in the operator's order, and then your own."`
	Complete       bool           `json:"complete" doc:"false: you have more than 100,000 waiting pushes or attempts; counting stopped there."`
	TenantChannels TenantChannels `json:"tenant_channels" doc:"The bounds of the channels that you make."`
}

// stateUnknown is the state of a channel without a report by a worker.
const stateUnknown channelhealth.State = "unknown"

// channelViewOf shows a channel; drained are the times when it will have sent what waits in each level, zero: not known.
func channelViewOf(c Channel, h channelhealth.Health, drained [len(push.Levels)]time.Time) channelView {
	v := channelView{
		Name: c.Name, Owner: "operator", Type: c.Type, State: h.State, Until: rest.MaybeTime(h.Until), AsOf: rest.MaybeTime(h.AsOf), Waiting: h.Waits(), Paused: h.Stops(),
		LastMinute: lastMinuteView{h.Attempts[push.Delivered], h.Attempts[push.Refused], h.Attempts[push.Unknown]},
		LastFive:   lastFiveView{h.Recent.Attempts, h.Recent.Rejected, h.Recent.Failed},
	}
	for i, l := range push.Levels {
		w := h.Waiting[i]
		v.Levels = append(v.Levels, levelView{Level: l.String(), Waiting: w.Waiting, Paused: h.Stopped[i], OldestDueAt: rest.MaybeTime(w.Oldest), DrainedAt: rest.MaybeTime(drained[i])})
	}
	if v.State == "" {
		v.State = stateUnknown
	}
	if c.Own {
		v.Owner = "tenant"
	}
	if c.Problem != "" {
		v.Problem = &c.Problem
	}
	if c.Rate > 0 {
		v.Throughput = &throughputView{c.Rate, c.Per.String(), max(c.Burst, 1), cmp.Or(c.Unit, "messages")}
	}
	return v
}

// pausedBy returns the view of a channel that a pause of sending stops. nil: none does.
func (v channelView) pausedBy(p *pause.Pause) channelView {
	if p != nil {
		v.State, v.Until, v.PauseID = channelhealth.Paused, rest.MaybeTime(p.Until), new(p.ID.String())
	}
	return v
}

// listChannels answers with all channels.
func (h *channels) list(c *rest.Call) error {
	v, err := h.read(c.Request.Context(), c.Caller.Tenant)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, v)
}

// read returns the channels as they are now, with counts of a moment ago.
func (h *channels) read(ctx context.Context, tenant uuid.UUID) (v channelsView, err error) {
	counted, err := h.counts.Of(ctx, tenant)
	if err != nil {
		return v, err
	}
	return h.view(counted, tenant), nil
}

// channelCounts has the counts of a tenant's channels at a time.
type channelCounts struct {
	report channelhealth.Report
	all    map[string][]channelhealth.Backlog // of all tenants
	at     time.Time
}

func (h *channels) count(ctx context.Context, tenant uuid.UUID) (c channelCounts, err error) {
	c.at = h.now()
	if c.report, err = h.Store.ChannelHealth(ctx, tenant); err != nil {
		return c, err
	}
	if slices.ContainsFunc(h.List, func(one Channel) bool { return one.Rate > 0 && c.report.Of(one.Name).Waits() > 0 }) {
		if c.all, err = h.backlogs.Of(ctx, uuid.Nil); err != nil {
			return c, err
		}
	}
	for _, one := range h.of(tenant) {
		name := channelhealth.OwnChannel(one.Name)
		if of := c.report.Seen(name); one.Own && one.segmented() && of.Waits() > 0 {
			if err := h.measure(ctx, tenant, one.Name, c.report.Of(name).Waiting[:]); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

// measure sets how many segments the waiting pushes of a channel have.
func (h *channels) measure(ctx context.Context, tenant uuid.UUID, channel string, waiting []channelhealth.Backlog) error {
	sample, err := h.Store.WaitingMessages(ctx, tenant, channel)
	if err == nil && h.Segments != nil {
		sample.Measure(waiting, func(message json.RawMessage) int { return h.Segments(tenant, channel, message) })
	}
	return err
}

// backlog counts the waiting pushes of all tenants in the channels with a throughput.
func (h *channels) backlog(ctx context.Context, _ uuid.UUID) (map[string][]channelhealth.Backlog, error) {
	var names []string
	for _, c := range h.List {
		if c.Rate > 0 {
			names = append(names, c.Name)
		}
	}
	all, err := h.Store.ChannelBacklogs(ctx, names)
	for _, c := range h.List {
		if err == nil && c.segmented() && len(all[c.Name]) > 0 {
			err = h.measure(ctx, uuid.Nil, c.Name, all[c.Name])
		}
	}
	return all, err
}

func (h *channels) view(counted channelCounts, tenant uuid.UUID) channelsView {
	v := channelsView{Channels: rest.ViewsOf(h.of(tenant), func(c Channel) channelView {
		of, backlogs, whose := counted.report.Seen(c.Name), counted.all[c.Name], tenant
		if c.Own {
			of = counted.report.SeenOwn(c.Name)
			backlogs, whose = of.Waiting[:], uuid.Nil
		}
		begin := counted.at
		if of.Until.After(begin) {
			begin = of.Until
		}
		var drained [len(push.Levels)]time.Time
		for i, after := range channelhealth.Drain(backlogs, whose, c.every(), c.Shares) {
			if after > 0 {
				drained[i] = begin.Add(after).UTC()
			}
		}
		return channelViewOf(c, of, drained).pausedBy(counted.report.StoppedBy(c.Name, h.now()))
	}), Complete: counted.report.Complete, TenantChannels: h.Own}
	if len(v.Channels) > 0 {
		v.Channels[0].Default = true
	}
	return v
}

func (h *channels) routes(*rest.Spec) []rest.Operation {
	failing := channelViewOf(Channel{Name: "push", Type: "webhook", Rate: 100, Per: time.Second, Burst: 100}, channelhealth.Health{
		State: channelhealth.Failing, Until: rest.ExampleTime(20 * time.Second), AsOf: rest.ExampleTime(0), Attempts: map[push.Outcome]int{push.Delivered: 4, push.Unknown: 12},
		Waiting: [len(push.Levels)]channelhealth.Backlog{1: {Waiting: 12, Oldest: rest.ExampleTime(0)}, 2: {Waiting: 200, Oldest: rest.ExampleTime(0)}},
		Recent:  channelhealth.Outcomes{Attempts: 80, Rejected: 1, Failed: 30},
	}, [len(push.Levels)]time.Time{1: rest.ExampleTime(21 * time.Second), 2: rest.ExampleTime(23 * time.Second)})
	failing.Default = true
	working := channelViewOf(Channel{Name: "log", Type: "log"}, channelhealth.Health{State: channelhealth.Working, AsOf: rest.ExampleTime(0)}, [len(push.Levels)]time.Time{})
	return []rest.Operation{{
		ID: "list-channels", Method: http.MethodGet, Path: channelsPath, Tag: TagChannels, Scope: push.ScopeChannelsRead, Serve: h.list,
		Summary: "Read the state of the channels",
		Description: "Returns for every channel whether your attempts are made and accepted, as the workers reported in the last seconds; your waiting pushes, and those that a pause of sending holds; and the outcomes of your attempts " +
			"that began in the last minute. Pauses and failures that only your pushes met hold back only your pushes. The numbers are counted at most once a second, and every ten seconds if you have so many pushes that counting takes long. Nothing about other tenants is shown.",
		Status: http.StatusOK, Answer: "The channels.", Example: channelsView{Channels: []channelView{failing, working}, Complete: true, TenantChannels: TenantChannels{Max: 20, Types: []string{"webhook", "sms", "email", "fcm", "apns"}}},
	}}
}
