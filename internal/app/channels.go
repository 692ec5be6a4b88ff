package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/httpapi/records"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/sms"
	"github.com/sendquota/sendquota/internal/store/audit"
	"github.com/sendquota/sendquota/internal/suppression"
)

// mostSegments is the number of segments of the longest usual text: providers advise against longer ones.
const mostSegments = 10

// channels creates the configured channels, or returns an error for each channel that fails.
func channels(cs []config.Channel, log *slog.Logger) (*channel.Set, error) {
	var (
		entries []channel.Entry
		faults  []error
	)
	for _, c := range cs {
		e, err := openChannel(c, log)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		entries = append(entries, e)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return channel.NewSet(entries...)
}

// openChannel opens a channel.
func openChannel(c config.Channel, log *slog.Logger) (channel.Entry, error) {
	out, err := newChannel(c, log)
	if err != nil {
		return channel.Entry{}, err
	}
	e := channel.Entry{Name: c.Name, Channel: out, Retry: push.Retry{
		MaxAttempts: c.MaxAttempts, First: c.Backoff.First, Max: c.Backoff.Max, FailOnUnknown: c.OnUnknown == config.Fail,
	}}
	switch c.Type {
	case config.SMS, config.Email:
		e.Gone = suppression.HardBounce
	case config.FCM, config.APNs:
		e.Gone = suppression.Unregistered
	}
	e.Shares = push.Shares{c.Levels.Urgent, c.Levels.Normal, c.Levels.Bulk}
	if t := c.Throughput; t.Rate > 0 {
		e.Speed = pace.PerSpan(t.Rate, t.Per, t.Burst)
		if t.Unit == config.Segments {
			e.Speed.Most = mostSegments
		}
	}
	return e, nil
}

// channelsOfAPI returns the API's description of the channels of tenants.
func (a *App) channelsOfAPI() records.Channels {
	all, byName := records.Channels{Store: a.store, Segments: a.segments}, map[string]records.Channel{}
	for _, c := range a.cfg.Channels {
		one := listedChannel(c)
		all.List = append(all.List, one)
		byName[c.Name] = one
	}
	own := a.cfg.TenantChannels
	all.Own = records.TenantChannels{Max: own.Max, Types: own.Types, AllowPrivateAddresses: own.AllowPrivateAddresses}
	all.Of = func(tenant uuid.UUID) []records.Channel {
		var list []records.Channel
		for _, c := range a.directory.List(tenant) {
			one := byName[c.Name]
			if c.Own {
				one = listedChannel(c.Settings)
				one.Name, one.Own = c.Name, true
				one.Problem, _ = a.directory.Problem(tenant, c.Name)
			}
			list = append(list, one)
		}
		return list
	}
	return all
}

// segments returns the segments of the text that a tenant's own channel would send, or the operator's for [uuid.Nil]; 0: it sends no text
// message.
func (a *App) segments(tenant uuid.UUID, name string, message json.RawMessage) int {
	size := a.directory.Size
	if tenant == uuid.Nil {
		size = func(_ uuid.UUID, name string, message json.RawMessage) (sms.Size, bool) {
			return a.channels.Size(name, message)
		}
	}
	is, _ := size(tenant, name, message)
	return is.Segments
}

// channelBehind estimates how long a tenant's channel takes to send what waits for it of each level of the tenant.
func (a *App) channelBehind(ctx context.Context, tenant uuid.UUID, name string) (after [len(push.Levels)]time.Duration, err error) {
	e, own := a.directory.Opened(tenant, name)
	if e.Speed.Every == 0 {
		return after, nil
	}
	var waiting []channelhealth.Backlog
	owner, whose := tenant, uuid.Nil
	if own {
		var report channelhealth.Report
		report, err = a.store.ChannelHealth(ctx, tenant)
		of := report.SeenOwn(name)
		waiting = of.Waiting[:]
	} else {
		var all map[string][]channelhealth.Backlog
		all, err = a.store.ChannelBacklogs(ctx, []string{name})
		waiting, owner, whose = all[name], uuid.Nil, tenant
	}
	if err == nil && e.Speed.Most > 0 && len(waiting) > 0 {
		var sample channelhealth.Sample
		sample, err = a.store.WaitingMessages(ctx, owner, name)
		sample.Measure(waiting, func(message json.RawMessage) int { return a.segments(owner, name, message) })
	}
	return channelhealth.Drain(waiting, whose, e.Speed.Every, e.Shares), err
}

// channelSpeed returns the time that the speed of a tenant's channel allows for a push; 0: any number may leave at once.
// It is also known of a disabled channel. segmented: for each segment of a text message.
func (a *App) channelSpeed(tenant uuid.UUID, name string) (every time.Duration, segmented bool) {
	e, _ := a.directory.Opened(tenant, name)
	return e.Speed.Every, e.Speed.Most > 0
}

func listedChannel(c config.Channel) records.Channel {
	return records.Channel{
		Name: c.Name, Type: c.Type, Rate: c.Throughput.Rate, Per: c.Throughput.Per, Burst: c.Throughput.Burst, Unit: c.Throughput.Unit,
		Shares: push.Shares{c.Levels.Urgent, c.Levels.Normal, c.Levels.Bulk},
	}
}

// channelRates calls each for the configured channels, and for all channels of tenants together. Rows of other channels get no label.
func (a *App) channelRates(ctx context.Context, each func(channel string, attempts, rejected, tenants int)) error {
	rates, err := a.store.ChannelRates(ctx)
	if err != nil {
		return err
	}
	for _, name := range a.channels.Names() {
		r := rates[name]
		each(name, r.Attempts, r.Rejected, r.Tenants)
	}
	own := rates[channelhealth.OwnChannel("")]
	each(delivery.OwnLabel, own.Attempts, own.Rejected, own.Tenants)
	return nil
}

// pausedPushes counts the due pushes that pauses hold, by configured channel; those of all channels of tenants have one label.
func (a *App) pausedPushes(ctx context.Context) (map[string]int, error) {
	counts, err := a.store.CountParked(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]int{delivery.OwnLabel: counts[booking.OwnRoute]}
	for _, name := range a.channels.Names() {
		all[name] = counts[name]
	}
	return all, nil
}

// auditsOfAPI returns the API's access to the workers' audits.
func (a *App) auditsOfAPI() records.Audits {
	all := records.Audits{Store: a.store}
	for _, c := range audit.Checks {
		all.Checks = append(all.Checks, records.AuditCheck(c))
	}
	return all
}

func newChannel(c config.Channel, log *slog.Logger) (channel.Channel, error) {
	to := channel.Connection{Name: c.Name, Timeout: c.Timeout, AllowPrivateAddresses: c.AllowPrivateAddresses}
	switch c.Type {
	case config.Webhook:
		return channel.NewWebhook(channel.WebhookConfig{
			Connection: to, URL: string(c.Webhook.URL), Secret: string(c.Webhook.Secret), PreviousSecret: string(c.Webhook.PreviousSecret),
		})
	case config.SMS:
		s := c.SMS
		return channel.NewSMS(channel.SMSConfig{
			Connection: to, AccountSID: string(s.AccountSID), User: string(s.APIKeySID), Password: string(s.AuthToken + s.APIKeySecret), // one of them
			From: s.From, MessagingServiceSID: s.MessagingServiceSID, StatusCallback: string(s.StatusCallback), BaseURL: s.BaseURL,
		})
	case config.Email:
		e := c.Email
		key, err := textOrFile(c, "dkim.key_file", "", e.DKIM.KeyFile)
		if err != nil {
			return nil, err
		}
		return channel.NewEmail(channel.EmailConfig{
			Connection: to, Host: e.Host, Port: e.Port, Security: e.TLS, Username: string(e.Username), Password: string(e.Password),
			From: e.From, ReplyTo: e.ReplyTo, AllowedFrom: e.AllowedFrom, MessageIDDomain: e.MessageIDDomain,
			BounceAddress: e.BounceAddress, DKIM: channel.DKIM{Domain: e.DKIM.Domain, Selector: e.DKIM.Selector, Key: key},
		})
	case config.FCM:
		credentials, err := textOrFile(c, "credentials_file", c.FCM.Credentials, c.FCM.CredentialsFile)
		if err != nil {
			return nil, err
		}
		return channel.NewFCM(channel.FCMConfig{
			Connection: to, Credentials: credentials, ProjectID: c.FCM.ProjectID, BaseURL: c.FCM.BaseURL, TokenURL: c.FCM.TokenURL,
		})
	case config.APNs:
		key, err := textOrFile(c, "key_file", c.APNs.Key, c.APNs.KeyFile)
		if err != nil {
			return nil, err
		}
		return channel.NewAPNs(channel.APNsConfig{
			Connection: to, Key: key, KeyID: c.APNs.KeyID, TeamID: c.APNs.TeamID, Topic: c.APNs.Topic, BaseURL: c.APNs.BaseURL,
		})
	case config.Log:
		return channel.NewLog(log), nil
	}
	return nil, fmt.Errorf("channels.%s: there is no channel of type %s", c.Name, c.Type)
}

// textOrFile returns a secret from its setting, or from the file that contains it.
func textOrFile(c config.Channel, setting string, text config.Secret, path string) (string, error) {
	if path == "" {
		return string(text), nil
	}
	read, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("channel %s: %s: %w", c.Name, setting, err)
	}
	return string(read), nil
}
