package ownchannels

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/strictyaml"
	"github.com/sendquota/sendquota/internal/tenantchannel"
)

// Store stores the channels of tenants.
type Store interface {
	OwnChannels(ctx context.Context, tenant uuid.UUID) (tenantchannel.Own, error)
	PutChannel(ctx context.Context, tenant uuid.UUID, name string, change tenantchannel.Changer) (c tenantchannel.Channel, created bool, err error)
	deletions
	tests
}

type deletions interface {
	BeginDelete(ctx context.Context, tenant uuid.UUID, name string, cancel bool) (tenantchannel.Deletion, error)
	KeepChannel(ctx context.Context, d tenantchannel.Deletion) error
	Deciders(ctx context.Context) ([]string, error)
	CancelPushes(ctx context.Context, d tenantchannel.Deletion, limit int) ([]booking.Ended, error)
	DeleteChannel(ctx context.Context, d tenantchannel.Deletion) (tenantchannel.Deleted, error)
}

type tests interface {
	BeginTest(ctx context.Context, tenant uuid.UUID, name string) (tenantchannel.Test, error)
	EndTest(ctx context.Context, tenant uuid.UUID, t tenantchannel.Test, outcome push.Outcome) error

	// PausedNow reports whether a pause stops a push now.
	PausedNow(ctx context.Context, p push.Push) (bool, error)
}

// Service changes and tests the channels of tenants.
type Service struct {
	store     Store
	directory *Directory
	cfg       ServiceConfig
}

// ServiceConfig configures a [Service].
type ServiceConfig struct {
	Bounds config.TenantChannels
	Lease  time.Duration

	// Released frees the place of a canceled push in the cache; nil: there is no cache.
	Released func(booking.Ended)
}

// NewService returns a service.
func NewService(st Store, directory *Directory, cfg ServiceConfig) *Service {
	return &Service{st, directory, cfg}
}

// Put creates or replaces a tenant's channel by the members in object. Its errors are [invalid.FieldErrors], relative to the
// object, or those of the store.
func (s *Service) Put(ctx context.Context, tenant uuid.UUID, name string, object json.RawMessage) (c tenantchannel.Channel, created bool, err error) {
	c, created, err = s.store.PutChannel(ctx, tenant, name, func(was tenantchannel.Channel) (tenantchannel.Change, error) {
		return s.change(name, object, was)
	})
	s.directory.Refresh(tenant)
	return c, created, err
}

// change reads a channel from the members in object.
func (s *Service) change(name string, object json.RawMessage, was tenantchannel.Channel) (c tenantchannel.Change, err error) {
	var before *config.TenantChannel
	if was.ID != uuid.Nil {
		is := stored(was)
		before = &is
	}
	settings, kept, bad, err := s.cfg.Bounds.ReadTenantChannel(name, object, before, s.cfg.Lease)
	if err == nil {
		err = bad.Err()
	}
	if err != nil {
		return c, err
	}
	if _, err := s.directory.open(settings); err != nil {
		return c, invalid.FieldErrors{{Message: err.Error()}}
	}
	if wrong := tenantchannel.NameFault(name); wrong != "" { // known only now: the caller wants the errors of the object, too
		return c, fmt.Errorf("the name of a channel %s", wrong)
	}
	c = tenantchannel.Change{Name: name, Type: settings.Type, Settings: kept.Settings, Secrets: map[string]string{}, Disabled: settings.Disabled, Max: s.cfg.Bounds.Max}
	for member, secret := range kept.Secrets {
		c.Secrets[member] = string(secret)
	}
	return c, nil
}

// Get returns a tenant's own channel, or [push.ErrNotFound].
func (s *Service) Get(ctx context.Context, tenant uuid.UUID, name string) (tenantchannel.Channel, error) {
	own, err := s.store.OwnChannels(ctx, tenant)
	if err != nil {
		return tenantchannel.Channel{}, err
	}
	for _, c := range own.Channels {
		if c.Name == name {
			return c, nil
		}
	}
	return tenantchannel.Channel{}, push.ErrNotFound
}

// Own returns a tenant's own channels.
func (s *Service) Own(ctx context.Context, tenant uuid.UUID) (tenantchannel.Own, error) {
	return s.store.OwnChannels(ctx, tenant)
}

// Offered reports whether the operator offers a tenant a channel of that name, which the tenant's own may hide.
func (s *Service) Offered(ctx context.Context, tenant uuid.UUID, name string) (bool, error) {
	own, err := s.store.OwnChannels(ctx, tenant)
	_, known := s.directory.operator.Get(name)
	return known && s.directory.offers(own.Name, name), err
}

// Members returns the settings of a channel as answers show them: its defaults are filled in, and masks replace secrets, also those that
// no key opens.
func (s *Service) Members(c tenantchannel.Channel) json.RawMessage {
	mask := func(name string, secret config.Secret) any {
		return ChannelSecret{Set: true, SetAt: c.SecretAt[name].UTC().Truncate(time.Second), Host: config.HostOf(name, secret)}
	}
	settings, bad, err := s.cfg.Bounds.ShownTenantChannel(c.Name, stored(c))
	if err != nil || len(bad) > 0 {
		return c.Settings
	}
	return settings.Members(mask)
}

// ChannelSecret is shown instead of a secret.
type ChannelSecret struct {
	Set   bool      `json:"set" doc:"true: the secret is set."`
	SetAt time.Time `json:"set_at" format:"date-time" doc:"When it was set."`
	Host  string    `json:"host,omitempty" doc:"Of a URL: its host, and its port if it has one. Absent for other secrets, and if no key opens the secret."`
}

// Problem returns why a tenant's own channel sends nothing, or "".
func (s *Service) Problem(c tenantchannel.Channel) string {
	if _, _, err := s.directory.opened(c); err != nil {
		return err.Error()
	}
	return ""
}

// TestResult is the outcome of a test.
type TestResult struct {
	Outcome           push.Outcome
	Error             string
	ProviderMessageID string
	Took              time.Duration
	Left              int // tests that the tenant can make in this hour
}

// Test makes one attempt to send a message through a tenant's channel, outside of any quota. Its errors are
// [invalid.FieldErrors], a [*tenantchannel.TooManyTestsError], [push.ErrNotFound], or wrap [ErrUnusable].
func (s *Service) Test(ctx context.Context, tenant uuid.UUID, name, to string, message json.RawMessage) (r TestResult, err error) {
	s.directory.Refresh(tenant)
	e, own, err := s.directory.Get(tenant, name)
	switch {
	case !own && (err == nil || errors.Is(err, errNotConfigured)): // the operator's, or none
		return r, push.ErrNotFound
	case err != nil:
		return r, err
	}
	if err := e.Channel.Check(to, message).Err(); err != nil {
		return r, err
	}
	now := time.Now().UTC()
	p := push.Push{ID: uuid.New(), Tenant: tenant, SendAt: now.Truncate(time.Second), ExpiresAt: now.Add(time.Hour), CreatedAt: now}
	p.Recipient, p.Channel, p.To, p.Message = "test", name, to, message
	switch paused, err := s.store.PausedNow(ctx, p); {
	case err != nil:
		return r, err
	case paused:
		return r, fmt.Errorf("%w: a pause has stopped sending", ErrUnusable)
	}
	test, err := s.store.BeginTest(ctx, tenant, name)
	if err != nil {
		return r, err
	}
	result := e.Channel.Send(ctx, p, 1)
	if result.Outcome == push.Unknown && ctx.Err() != nil {
		result.Error = fmt.Sprintf("no answer within %s: a test does not wait longer, whatever the timeout of the channel", duration.Words(time.Since(now).Round(time.Second)))
	}
	r = TestResult{Outcome: result.Outcome, Error: result.Error, ProviderMessageID: result.ProviderMessageID, Took: time.Since(now), Left: test.Left}
	_ = s.store.EndTest(context.WithoutCancel(ctx), tenant, test, result.Outcome) // the entry about the test itself is written
	return r, nil
}

// The API and the console describe the members of channels by these names.
type (
	// ChannelType is a type of channel with its members.
	ChannelType = config.ChannelType
	// Member describes a member of a channel, for a schema or a form.
	Member = strictyaml.Setting
)

// The kinds of members, and the default of a required one.
const (
	KindWord       = strictyaml.KindWord
	KindBoolean    = strictyaml.KindBoolean
	KindInteger    = strictyaml.KindInteger
	KindDuration   = strictyaml.KindDuration
	KindSecret     = strictyaml.KindSecret
	KindList       = strictyaml.KindList
	RequiredMember = strictyaml.Required
)

// ChannelTypes describes all types that a tenant can have in any installation.
func ChannelTypes() []ChannelType { return config.ChannelTypes() }
