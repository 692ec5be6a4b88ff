package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/sendquota/sendquota/internal/store/accounts"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/store"
)

type createTenant struct {
	jsonFlag
	Name string `arg:"" help:"Name of the tenant: 1 to 100 printable characters."`
}

// Validate is called by kong.
func (c createTenant) Validate() error {
	if c.Name == "" || len([]rune(c.Name)) > 100 || strings.ContainsFunc(c.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("name %s: must be 1 to 100 printable characters", brief(c.Name))
	}
	return nil
}

// brief quotes a text, or the beginning of a long one.
func brief(given string) string {
	if runes := []rune(given); len(runes) > 100 {
		return fmt.Sprintf("%q… (%d characters)", string(runes[:40]), len(runes))
	}
	return strconv.Quote(given)
}

func (c createTenant) Run() error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		id, created, err := st.CreateTenant(ctx, c.Name)
		if errors.Is(err, accounts.ErrDeleting) {
			return fmt.Errorf("the tenant %s is being deleted; finish that first: sendquota tenants delete %[1]s", brief(c.Name))
		}
		if err != nil {
			return err
		}
		verb := map[bool]string{true: "created", false: "exists already"}[created]
		return c.print(map[string]any{"id": id, "name": c.Name, "created": created}, "tenant %s %s, id %s\n", c.Name, verb, id)
	})
}

type listTenants struct{ jsonFlag }

func (c listTenants) Run() error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		tenants, err := st.Tenants(ctx)
		if err != nil {
			return err
		}
		views := make([]tenantView, len(tenants))
		for i, t := range tenants {
			views[i] = tenantView{t.ID, t.Name, t.CreatedAt, t.PendingPushes, t.RecipientsPerDay, t.AudienceBytes, t.DeletingAt}
		}
		titles := []string{"ID", "NAME", "CREATED", "PENDING CAP", "RECIPIENTS CAP", "AUDIENCES CAP", "DELETING SINCE"}
		return printList(os.Stdout, c.JSON, "tenants", views, titles, func(t tenantView) []string {
			return []string{t.ID.String(), t.Name, timeOrDash(&t.CreatedAt), shownCap(t.PendingPushes), shownCap(t.RecipientsPerDay), shownCap(t.AudienceBytes), timeOrDash(t.DeletingAt)}
		})
	})
}

// tenantView is a tenant. A cap of null is the cap of all tenants.
type tenantView struct {
	ID               uuid.UUID  `json:"id"`
	Name             string     `json:"name"`
	CreatedAt        time.Time  `json:"created_at"`
	PendingPushes    *int       `json:"pending_pushes"`
	RecipientsPerDay *int       `json:"recipients_per_day"`
	AudienceBytes    *int       `json:"audience_bytes"`
	DeletingAt       *time.Time `json:"deleting_at"`
}
