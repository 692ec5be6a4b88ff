package campaign

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/sms"
	"github.com/sendquota/sendquota/internal/store/campaigns"
)

// Service serves callers' requests. It is safe for concurrent use. Every method returns [push.ErrNotFound] for another
// tenant's campaign.
type Service struct {
	reads
	drafts    drafts
	audiences audiences
	lines     lines
	copies    copies
	now       func() time.Time
	cfg       Config
}

// Config limits a tenant's campaigns. All fields but Computing, Check and TextSize are required.
type Config struct {
	MaxPerTenant int // campaigns that have not ended
	MaxAudience  int // recipients of a campaign
	// MaxAudienceBytes limits the bytes of the lines of an audience. TenantBytes limits the bytes of all audiences of a
	// tenant without a cap of its own. 0 means unlimited.
	MaxAudienceBytes, TenantBytes int
	Channels                      []string      // the first one is the default
	MaxHorizon                    time.Duration // how far ahead a push may be scheduled

	// Computing limits concurrent parsing of templates; nil: no limit.
	Computing *bulkhead.Computing[uuid.UUID]

	// Check returns what a channel's provider would certainly refuse; nil: no channel is checked.
	Check func(channel, to string, message json.RawMessage) invalid.FieldErrors

	// TextSize returns the size of the text that a channel would send, and whether it sends text messages; nil: none does.
	TextSize func(channel string, message json.RawMessage) (size sms.Size, is bool)

	// Own knows the channels of each tenant, which may be its own; nil: all have Channels and Check.
	Own schedule.OwnChannels
}

// size returns the size of the text that a tenant's channel would send; nil: the channel sends no text messages.
func (cfg *Config) size(tenant uuid.UUID, channel string, message json.RawMessage) *sms.Size {
	var size sms.Size
	is := false
	switch {
	case cfg.Own != nil:
		size, is = cfg.Own.Size(tenant, channel, message)
	case cfg.TextSize != nil:
		size, is = cfg.TextSize(channel, message)
	}
	if !is {
		return nil
	}
	return &size
}

// channels lists the channels of a tenant.
func (c *Config) channels(tenant uuid.UUID) []string {
	if c.Own != nil {
		return c.Own.Names(tenant)
	}
	return c.Channels
}

// first returns the default channel of a tenant; "": there is none.
func (c *Config) first(tenant uuid.UUID) string {
	if all := c.channels(tenant); len(all) > 0 {
		return all[0]
	}
	return ""
}

func (c *Config) checks() bool { return c.Own != nil || c.Check != nil }

// check returns what the provider of a tenant's channel would certainly refuse.
func (c *Config) check(tenant uuid.UUID, channel, to string, message json.RawMessage) invalid.FieldErrors {
	if c.Own != nil {
		return c.Own.Check(tenant, channel, to, message)
	}
	return c.Check(channel, to, message)
}

// reads are the methods of the store that the API uses unchanged.
type reads interface {
	Campaign(ctx context.Context, tenant, id uuid.UUID) (broadcast.Campaign, error)
	Campaigns(ctx context.Context, tenant uuid.UUID, status broadcast.Status, after broadcast.Position, limit int) (broadcast.Page, error)
	DeleteDraft(ctx context.Context, tenant, id uuid.UUID) error
	CampaignRecipients(ctx context.Context, tenant, id uuid.UUID, f broadcast.RecipientFilter, after, limit int) (broadcast.RecipientPage, error)
}

// drafts creates and changes campaigns.
type drafts interface {
	CreateCampaign(ctx context.Context, n campaigns.NewCampaign) (p broadcast.Campaign, found bool, err error)
	ChangeDraft(ctx context.Context, by push.Caller, changed broadcast.Campaign, unchanged push.Unchanged, checked campaigns.Checked) (broadcast.Campaign, error)
	ActOnCampaign(ctx context.Context, tenant, id uuid.UUID, action broadcast.Action, unchanged push.Unchanged, checked campaigns.Checked) (broadcast.Campaign, error)
}

// serviceStore stores all that callers' requests need.
type serviceStore interface {
	reads
	drafts
	audiences
	lines
	copies
}

// New returns the campaigns in a store. now is the clock, usually time.Now.
func New(st serviceStore, now func() time.Time, cfg Config) *Service {
	return &Service{reads: st, drafts: st, audiences: st, lines: st, copies: st, now: now, cfg: cfg}
}

// Key is the Idempotency-Key of a request; the zero value is none.
type Key struct {
	Text string
	Hash []byte // of the request
}

// Create creates a draft, or returns the campaign that an earlier request with the same key has created. Its errors are
// [invalid.FieldErrors], [broadcast.ErrTooMany] and [push.ErrKeyReused].
func (s *Service) Create(ctx context.Context, tenant uuid.UUID, c Change, key Key) (p broadcast.Campaign, found bool, err error) {
	c = s.complete(c, tenant)
	p = c.on(s.empty(tenant))
	p.ID = uuid.Must(uuid.NewV7())
	if key.Text != "" {
		p.ID = uuid.NewHash(sha256.New(), tenant, []byte("campaign "+key.Text), 8)
	}
	var wrong error
	err = s.cfg.Computing.Do(ctx, tenant, func() error {
		wrong = s.Check(c, s.empty(tenant)).Err()
		return nil
	})
	if err != nil {
		return p, false, fmt.Errorf("create campaign: %w", err)
	}
	if wrong != nil && key.Text == "" {
		return p, false, wrong
	}
	p, found, err = s.drafts.CreateCampaign(ctx, campaigns.NewCampaign{Campaign: p, RequestHash: key.Hash, Most: s.cfg.MaxPerTenant, Invalid: wrong})
	if err != nil {
		return p, found, fmt.Errorf("create campaign: %w", err)
	}
	return p, found, nil
}

// empty returns an empty draft.
func (s *Service) empty(tenant uuid.UUID) broadcast.Campaign {
	return broadcast.Campaign{Tenant: tenant, Channel: s.cfg.first(tenant), OnConflict: reject, Status: broadcast.Draft}
}

// complete replaces zero values by defaults that are not zero.
func (s *Service) complete(c Change, tenant uuid.UUID) Change {
	if c.Channel != nil && *c.Channel == "" {
		first := s.cfg.first(tenant)
		c.Channel = &first
	}
	if c.OnConflict != nil && *c.OnConflict == "" {
		byDefault := reject
		c.OnConflict = &byDefault
	}
	return c
}

// Change changes a caller's draft. Its errors are [invalid.FieldErrors], [push.ErrNotFound],
// [*broadcast.StateError], [*push.StaleError] and, if a schedule copies the draft, [*push.ScopeError].
func (s *Service) Change(ctx context.Context, by push.Caller, id uuid.UUID, c Change, unchanged push.Unchanged) (broadcast.Campaign, error) {
	c = s.complete(c, by.Tenant)
	var wrong invalid.FieldErrors
	err := s.cfg.Computing.Do(ctx, by.Tenant, func() error {
		wrong = checkTemplates(c)
		return nil
	})
	if err != nil {
		return broadcast.Campaign{}, fmt.Errorf("change campaign: %w", err)
	}
	for {
		p, err := s.Campaign(ctx, by.Tenant, id)
		if err != nil {
			return p, err
		}
		checked := campaigns.Checked{At: p.UpdatedAt, Invalid: append(slices.Clone(wrong), s.check(c, p)...).Err()}
		if p, err = s.drafts.ChangeDraft(ctx, by, c.on(p), unchanged, checked); !errors.Is(err, campaigns.ErrChanged) {
			return p, err
		}
	}
}

// Act starts, pauses, resumes or cancels a campaign, and returns its new state. Repeating an action changes nothing.
// Workers do the rest. After a pause or a cancel, no recipient of the campaign is booked, and no attempt begins. A
// start returns [invalid.FieldErrors] for values of the draft that are no longer possible. Other errors are
// [push.ErrNotFound], [*broadcast.StateError] and, if the campaign has changed, [*push.StaleError].
func (s *Service) Act(ctx context.Context, tenant, id uuid.UUID, action broadcast.Action, unchanged push.Unchanged) (broadcast.Campaign, error) {
	for {
		var checked campaigns.Checked
		if action == broadcast.Start {
			p, err := s.Campaign(ctx, tenant, id)
			if err != nil {
				return p, err
			}
			checked = campaigns.Checked{At: p.UpdatedAt, Invalid: s.checkStart(p)}
		}
		p, err := s.drafts.ActOnCampaign(ctx, tenant, id, action, unchanged, checked)
		if !errors.Is(err, campaigns.ErrChanged) {
			return p, err
		}
	}
}

// checkStart returns the faults of a draft that is to start now.
func (s *Service) checkStart(p broadcast.Campaign) error {
	if p.SendAt.IsZero() && p.LocalTime.IsZero() && p.Spread > 0 { // it is sent from now on
		p.SendAt = s.now().UTC().Truncate(quota.Second)
	}
	return s.Check(Change{Channel: &p.Channel, SendAt: &p.SendAt, LocalTime: &p.LocalTime, Latest: &p.Latest}, p).Err()
}
