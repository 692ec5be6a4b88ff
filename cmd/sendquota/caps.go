package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/accounts"
)

// usual stands for the cap of tenant_caps, which holds for all tenants.
const usual = "default"

type capTenant struct {
	jsonFlag
	Name             string  `arg:"" help:"Name of the tenant."`
	Pending          *string `placeholder:"N" help:"The maximum number of pushes that are scheduled or being sent; 0: no maximum; default: the one of tenant_caps."`
	RecipientsPerDay *string `placeholder:"N" help:"The maximum number of recipients with pushes on one day of UTC; 0: no maximum; default: the one of tenant_caps."`
	AudienceBytes    *string `placeholder:"N" help:"The maximum size of all audiences of campaigns together, in bytes; 0: no maximum; default: the one of tenant_caps."`
}

// Validate is called by kong.
func (c capTenant) Validate() error {
	if c.Pending == nil && c.RecipientsPerDay == nil && c.AudienceBytes == nil {
		return errors.New("expected --pending, --recipients-per-day or --audience-bytes")
	}
	_, pending := capOf("--pending", c.Pending, mostPushes)
	_, recipients := capOf("--recipients-per-day", c.RecipientsPerDay, mostPushes)
	_, audiences := capOf("--audience-bytes", c.AudienceBytes, mostBytes)
	return errors.Join(pending, recipients, audiences)
}

// The bounds of caps.
const (
	mostPushes = 1_000_000_000
	mostBytes  = 1_000_000_000_000_000
)

// capOf parses a cap; nil is the cap of all tenants.
func capOf(flag string, given *string, most int) (*int, error) {
	if given == nil || *given == usual {
		return nil, nil
	}
	n, err := strconv.Atoi(*given)
	if err != nil || n < 0 || n > most {
		return nil, fmt.Errorf("%s %s: must be a whole number from 0 to %d, or %s", flag, brief(*given), most, usual)
	}
	return &n, nil
}

// newCap returns the change that a valid flag asks for; nil: none.
func newCap(given *string, most int) *accounts.NewCap {
	if given == nil {
		return nil
	}
	n, _ := capOf("", given, most) // Validate has checked it
	return &accounts.NewCap{Value: n}
}

func (c capTenant) Run() error {
	return withStore(func(ctx context.Context, cfg config.Config, st *store.Store) error {
		own, err := st.CapTenant(ctx, c.Name, accounts.CapChange{
			PendingPushes: newCap(c.Pending, mostPushes), RecipientsPerDay: newCap(c.RecipientsPerDay, mostPushes), AudienceBytes: newCap(c.AudienceBytes, mostBytes),
		})
		if errors.Is(err, push.ErrNotFound) {
			_, err = tenantNamed(ctx, st, c.Name)
		}
		if err != nil {
			return err
		}
		return c.print(map[string]any{"name": c.Name, "pending_pushes": own.PendingPushes, "recipients_per_day": own.RecipientsPerDay, "audience_bytes": own.AudienceBytes},
			"tenant %s: pending pushes %s, recipients a day %s, bytes of audiences %s; it holds within a second\n",
			c.Name, shownCap(own.PendingPushes), shownCap(own.RecipientsPerDay), shownCap(own.AudienceBytes))
	})
}

func shownCap(n *int) string {
	switch {
	case n == nil:
		return usual
	case *n == 0:
		return "any"
	}
	return strconv.Itoa(*n)
}
