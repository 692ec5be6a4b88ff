package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/store/accounts"
	"github.com/sendquota/sendquota/internal/tenantchannel"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/seal"
	"github.com/sendquota/sendquota/internal/stats"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/webhook"
)

type showStatus struct{ listOfTenant }

type waitingView struct {
	Tenant    string     `json:"tenant"`
	Waiting   int        `json:"waiting"`
	UnderWay  int        `json:"under_way"`
	Due       int        `json:"due"`
	PutOff    int        `json:"put_off"` // by a rule, when they were due
	Paused    int        `json:"paused"`  // due pushes that a pause of sending holds
	OldestDue *time.Time `json:"oldest_due"`
}

func (c showStatus) Run() error {
	return c.withTenant(func(ctx context.Context, st *store.Store, tenant uuid.UUID) error {
		all, err := st.WaitingByTenant(ctx, tenant)
		if err != nil {
			return err
		}
		views := make([]waitingView, len(all))
		for i, t := range all {
			views[i] = waitingView{t.Name, t.Waiting, t.UnderWay, t.Due, t.PutOff, t.Paused, t.OldestDue}
		}
		titles := []string{"TENANT", "WAITING", "UNDER WAY", "DUE", "PUT OFF", "PAUSED", "OLDEST DUE"}
		return printList(os.Stdout, c.JSON, "tenants", views, titles, func(v waitingView) []string {
			return []string{v.Tenant, strconv.Itoa(v.Waiting), strconv.Itoa(v.UnderWay), strconv.Itoa(v.Due), strconv.Itoa(v.PutOff), strconv.Itoa(v.Paused), timeOrDash(v.OldestDue)}
		})
	})
}

type showChannels struct{ listOfTenant }

type channelView struct {
	Channel  string               `json:"channel"`
	Owner    string               `json:"owner"` // operator or tenant
	State    channelhealth.State  `json:"state"` // empty: no worker has reported
	Problem  string               `json:"problem,omitempty"`
	Until    *time.Time           `json:"until"`
	Due      int                  `json:"due"`
	Paused   int                  `json:"paused"`   // due pushes that a pause of sending holds
	Attempts map[push.Outcome]int `json:"attempts"` // of the last minute
}

const (
	ofOperator, ofTenant = "operator", "tenant"
	// allOwn is the row for the channels that tenants have made, in the list of all tenants.
	allOwn = "(tenant)"
)

func (c showChannels) Run() error {
	return withStore(func(ctx context.Context, cfg config.Config, st *store.Store) (err error) {
		var tenant uuid.UUID
		if c.Tenant != nil {
			if tenant, err = tenantNamed(ctx, st, *c.Tenant); err != nil {
				return err
			}
		}
		sameKey, err := st.KnowsSealKey(ctx)
		if err != nil {
			return err
		}
		found := map[string]channelView{}
		err = st.EachTenant(ctx, tenant, func(t accounts.TenantInfo) error {
			report, err := st.ChannelHealth(ctx, t.ID)
			if err != nil {
				return err
			}
			own, err := st.OwnChannels(ctx, t.ID)
			seen := make([]channelhealth.Health, len(own.Channels))
			for i, o := range own.Channels {
				seen[i] = report.SeenOwn(o.Name)
			}
			for i, o := range own.Channels {
				name := allOwn
				if c.Tenant != nil {
					name = o.Name
				}
				found[name] = found[name].and(name, ofTenant, &seen[i])
				if c.Tenant != nil {
					found[name] = found[name].pausedBy(report.StoppedBy(o.Name, time.Now()))
					found[name] = found[name].stopped(o, sameKey)
				}
				delete(report.Channels, o.Name)
			}
			maps.DeleteFunc(report.Channels, func(name string, _ *channelhealth.Health) bool { return c.hidden(cfg, t.Name, name) })
			for name, h := range report.Channels {
				found[name] = found[name].and(name, ofOperator, h)
				if by := report.StoppedBy(name, time.Now()); by != nil && (c.Tenant != nil || by.Tenant == uuid.Nil) {
					found[name] = found[name].pausedBy(by)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		views := slices.SortedFunc(maps.Values(found), func(a, b channelView) int { return cmp.Compare(a.Channel, b.Channel) })
		if views == nil {
			views = []channelView{}
		}
		titles := []string{"CHANNEL", "OWNER", "STATE", "UNTIL", "DUE", "PAUSED", "DELIVERED", "REFUSED", "UNKNOWN"}
		return printList(os.Stdout, c.JSON, "channels", views, titles, channelView.row)
	})
}

// hidden reports whether a channel has no row for a tenant: a deleted one of tenants, or one that is not offered to this one.
func (c showChannels) hidden(cfg config.Config, tenant, name string) bool {
	i := slices.IndexFunc(cfg.Channels, func(one config.Channel) bool { return one.Name == name })
	return strings.HasPrefix(name, channelhealth.OwnChannel("")) || i >= 0 && c.Tenant != nil && !cfg.Channels[i].Offered(tenant)
}

// row returns the columns of the view.
func (v channelView) row() []string {
	return []string{
		v.Channel, v.Owner, cmp.Or(v.Problem, string(v.State), "-"), timeOrDash(v.Until), strconv.Itoa(v.Due), strconv.Itoa(v.Paused),
		strconv.Itoa(v.Attempts[push.Delivered]), strconv.Itoa(v.Attempts[push.Refused]), strconv.Itoa(v.Attempts[push.Unknown]),
	}
}

// and returns the view with what is known of a channel of one more tenant. The state is the worst of all tenants.
func (v channelView) and(name, owner string, h *channelhealth.Health) channelView {
	v.Channel, v.Owner, v.Due, v.Paused = name, owner, v.Due+h.Waits(), v.Paused+h.Stops()
	if h.State.Worse(v.State) {
		v.State, v.Until = h.State, orNil(h.Until)
	}
	if v.Attempts == nil {
		v.Attempts = map[push.Outcome]int{push.Delivered: 0, push.Refused: 0, push.Unknown: 0}
	}
	for outcome, n := range h.Attempts {
		v.Attempts[outcome] += n
	}
	return v
}

// pausedBy returns the view with the state of a channel that a pause of sending stops. nil: none does.
func (v channelView) pausedBy(p *pause.Pause) channelView {
	if p != nil {
		v.State, v.Until = channelhealth.Paused, orNil(p.Until)
	}
	return v
}

// stopped returns the view with the reason why a tenant's own channel sends nothing, if there is one. sameKey reports whether this
// program has the key that the others have.
func (v channelView) stopped(c tenantchannel.Channel, sameKey bool) channelView {
	switch {
	case c.Deleting:
		v.Problem = "deleting"
	case c.Disabled:
		v.Problem = "disabled"
	case c.Fault != nil && !sameKey:
		fmt.Fprintf(os.Stderr, "channel %s: this shell has no %s, or another one than the programs, so that it does not know whether the channel can be opened\n", c.Name, seal.KeyVariable)
		v.Problem = "unknown"
	case c.Fault != nil:
		v.Problem = "sealed by another key"
	}
	return v
}

type listFailures struct {
	listOfTenant
	Channel string `placeholder:"NAME" help:"Only pushes through this channel."`
	From    moment `placeholder:"TIME" help:"Only pushes with a send time at or after this time (RFC 3339). Default: a day ago."`
}

type failureView struct {
	Tenant            string      `json:"tenant"`
	Status            push.Status `json:"status"`
	Channel           string      `json:"channel"`
	Reason            string      `json:"reason"`
	Pushes            int         `json:"pushes"`
	PossiblyDelivered int         `json:"possibly_delivered"`
	First             time.Time   `json:"first_send_at"`
	Last              time.Time   `json:"last_send_at"`
}

func (c listFailures) Run() error {
	return c.withTenant(func(ctx context.Context, st *store.Store, tenant uuid.UUID) error {
		q := stats.FailureQuery{Channel: c.Channel, From: c.From.Time, Until: booking.EndOfTime}
		if q.From.IsZero() {
			q.From = time.Now().Add(-24 * time.Hour)
		}
		views := []failureView{}
		err := st.EachTenant(ctx, tenant, func(t accounts.TenantInfo) error {
			f, err := st.Failures(ctx, t.ID, q)
			for _, g := range f.Groups {
				views = append(views, failureView{t.Name, g.Status, g.Channel, g.Reason, g.Pushes, g.PossiblyDelivered, g.First.UTC(), g.Last.UTC()})
			}
			return err
		})
		if err != nil {
			return err
		}
		titles := []string{"TENANT", "STATUS", "CHANNEL", "PUSHES", "POSSIBLY DELIVERED", "LAST SEND TIME", "REASON"}
		return printList(os.Stdout, c.JSON, "failures", views, titles, func(v failureView) []string {
			return []string{v.Tenant, string(v.Status), v.Channel, strconv.Itoa(v.Pushes), strconv.Itoa(v.PossiblyDelivered), timeOrDash(&v.Last), v.Reason}
		})
	})
}

type listWebhooks struct{ listOfTenant }

type webhookView struct {
	ID             uuid.UUID       `json:"id"`
	Tenant         string          `json:"tenant"`
	URL            string          `json:"url"`
	Events         []webhook.Event `json:"events"`
	Failures       int             `json:"failures"`
	FailingSince   *time.Time      `json:"failing_since"`
	DisabledAt     *time.Time      `json:"disabled_at"`
	DisabledReason string          `json:"disabled_reason"`
}

func (c listWebhooks) Run() error {
	return c.withTenant(func(ctx context.Context, st *store.Store, tenant uuid.UUID) error {
		views := []webhookView{}
		err := st.EachTenant(ctx, tenant, func(t accounts.TenantInfo) error {
			hooks, err := st.Webhooks(ctx, t.ID)
			for _, w := range hooks {
				views = append(views, webhookView{w.ID, t.Name, w.URL, w.Events, w.Failures, orNil(w.FailingSince), orNil(w.DisabledAt), w.DisabledReason})
			}
			return err
		})
		if err != nil {
			return err
		}
		titles := []string{"ID", "TENANT", "FAILURES", "FAILING SINCE", "DISABLED", "EVENTS", "URL"}
		return printList(os.Stdout, c.JSON, "webhooks", views, titles, func(v webhookView) []string {
			events := make([]string, len(v.Events))
			for i, e := range v.Events {
				events[i] = string(e)
			}
			return []string{v.ID.String(), v.Tenant, strconv.Itoa(v.Failures), timeOrDash(v.FailingSince), timeOrDash(v.DisabledAt), strings.Join(events, ","), v.URL}
		})
	})
}
