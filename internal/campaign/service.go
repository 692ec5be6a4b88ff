package campaign

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// Service does what callers ask for. It is safe for concurrent use. Another tenant's campaign is [push.ErrNotFound]
// everywhere.
type Service struct {
	reads
	store *store.Store
	now   func() time.Time
	cfg   Config
}

// Config bounds what tenants may have. All of it must be given, but for Computing and Check.
type Config struct {
	MaxPerTenant int // campaigns that have not ended
	MaxAudience  int // recipients of one
	// MaxAudienceBytes is how many bytes the lines of one may have, and TenantBytes those of all of a tenant that has no cap of its own; 0: any
	// number.
	MaxAudienceBytes, TenantBytes int
	Channels                      []string      // the first one is that of campaigns that name none
	MaxHorizon                    time.Duration // how far ahead a push may be scheduled

	// Computing has turns at reading templates; nil: there is always one.
	Computing *bulkhead.Computing[uuid.UUID]

	// Check says what the provider behind a channel would surely refuse; nil: nothing is known.
	Check func(channel, to string, message json.RawMessage) invalid.FieldErrors
}

// reads is the part of the store that the API uses as it is.
type reads interface {
	Campaign(ctx context.Context, tenant, id uuid.UUID) (push.Campaign, error)
	Campaigns(ctx context.Context, tenant uuid.UUID, status push.CampaignStatus, after push.CampaignPosition, limit int) (push.CampaignPage, error)
	DeleteDraft(ctx context.Context, tenant, id uuid.UUID) error
	CampaignRecipients(ctx context.Context, tenant, id uuid.UUID, f push.CampaignRecipientFilter, after, limit int) (push.CampaignRecipientPage, error)
}

// New returns the campaigns in a store. now is the clock, usually time.Now.
func New(st *store.Store, now func() time.Time, cfg Config) *Service {
	return &Service{reads: st, store: st, now: now, cfg: cfg}
}

// Key is the Idempotency-Key of a request; the zero value is none.
type Key struct {
	Text string
	Hash []byte // of the request
}

// Create makes a draft, or finds the campaign that an earlier request with the same key has made. Its errors are
// [invalid.FieldErrors], [push.ErrTooManyCampaigns] and [push.ErrKeyReused].
func (s *Service) Create(ctx context.Context, tenant uuid.UUID, c Change, key Key) (p push.Campaign, found bool, err error) {
	c = s.complete(c)
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
	p, found, err = s.store.CreateCampaign(ctx, store.NewCampaign{Campaign: p, RequestHash: key.Hash, Most: s.cfg.MaxPerTenant, Invalid: wrong})
	if err != nil {
		return p, found, fmt.Errorf("create campaign: %w", err)
	}
	return p, found, nil
}

// empty is a draft of which nothing was said.
func (s *Service) empty(tenant uuid.UUID) push.Campaign {
	return push.Campaign{Tenant: tenant, Channel: s.cfg.Channels[0], OnConflict: reject, Status: push.CampaignDraft}
}

// complete puts the defaults in the place of what has another one than the zero value.
func (s *Service) complete(c Change) Change {
	if c.Channel != nil && *c.Channel == "" {
		c.Channel = &s.cfg.Channels[0]
	}
	if c.OnConflict != nil && *c.OnConflict == "" {
		byDefault := reject
		c.OnConflict = &byDefault
	}
	return c
}

// Change changes a draft of a caller. Its errors are [invalid.FieldErrors], [push.ErrNotFound], [*push.CampaignStateError],
// [*push.StaleError] and, if a schedule copies the draft, [*push.ScopeError].
func (s *Service) Change(ctx context.Context, by push.Caller, id uuid.UUID, c Change, unchanged push.Unchanged) (push.Campaign, error) {
	c = s.complete(c)
	var wrong invalid.FieldErrors
	err := s.cfg.Computing.Do(ctx, by.Tenant, func() error {
		wrong = checkTemplates(c) // before the campaign is locked: it may take long
		return nil
	})
	if err != nil {
		return push.Campaign{}, fmt.Errorf("change campaign: %w", err)
	}
	return s.store.ChangeDraft(ctx, by, id, unchanged, func(p push.Campaign) (push.Campaign, error) {
		return c.on(p), append(slices.Clone(wrong), s.check(c, p)...).Err()
	})
}
