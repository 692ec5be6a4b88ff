package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

type listPauses struct {
	Tenant *string `placeholder:"NAME" help:"The pauses that stop this tenant's sending: its own and the operator's. Default: the operator's."`
	jsonFlag
}

// Run lists pauses that are in force, the latest first.
func (c listPauses) Run() error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) (err error) {
		var tenant uuid.UUID
		if c.Tenant != nil {
			if tenant, err = tenantNamed(ctx, st, *c.Tenant); err != nil {
				return err
			}
		}
		page, err := st.Pauses(ctx, tenant, pause.Position{}, pause.MaxListed)
		if err != nil {
			return err
		}
		views := make([]pauseView, len(page.Pauses))
		for i, p := range page.Pauses {
			views[i] = pauseViewOf(p)
		}
		titles := []string{"ID", "OF", "SCOPE", "NAME", "SINCE", "UNTIL", "REASON"}
		return printList(os.Stdout, c.JSON, "pauses", views, titles, func(v pauseView) []string {
			of, name := "all tenants", "-"
			if v.Tenant != nil {
				of = *c.Tenant
			}
			if v.Name != nil {
				name = *v.Name
			}
			return []string{v.ID.String(), of, string(v.Scope), name, timeOrDash(&v.CreatedAt), timeOrDash(v.Until), cmp.Or(v.Reason, "-")}
		})
	})
}

type resumeSending struct {
	jsonFlag
	ID *string `arg:"" optional:"" help:"The id of the pause, as pauses lists it; instead of its scope."`
	pauseTarget
}

// Validate is called by kong.
func (c resumeSending) Validate() error {
	if c.ID == nil {
		return c.check()
	}
	var errs []error
	if _, err := uuid.Parse(*c.ID); err != nil {
		errs = append(errs, fmt.Errorf("%s: must be the id of a pause, a UUID", brief(*c.ID)))
	}
	if c.All || c.Channel != nil || c.Category != nil || c.Campaign != nil {
		errs = append(errs, errors.New("expected either an id, or --all, --channel, --category or --campaign"))
	}
	return errors.Join(errs...)
}

// Run ends a pause.
func (c resumeSending) Run() error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		if c.ID != nil {
			return c.resumeByID(ctx, st, uuid.MustParse(*c.ID))
		}
		p, of, err := c.pause(ctx, st)
		if err != nil {
			return err
		}
		page, err := st.Pauses(ctx, p.Tenant, pause.Position{}, pause.MaxListed)
		if err != nil {
			return err
		}
		for _, one := range page.Pauses {
			if !one.Same(&p) {
				continue
			}
			if _, err := st.DeletePause(ctx, p.Tenant, one.ID); err != nil {
				return err
			}
			return c.print(map[string]any{"resumed": true, "id": one.ID}, "resumed %s of %s\n", scopeText(p), of)
		}
		return c.print(map[string]any{"resumed": false, "id": nil}, "%s of %s was not paused\n", scopeText(p), of)
	})
}

// resumeByID ends the pause with an id. A tenant, if one is named, must be its owner.
func (c resumeSending) resumeByID(ctx context.Context, st *store.Store, id uuid.UUID) error {
	tenant, err := st.PauseOwner(ctx, id)
	if err == nil && c.Tenant != nil {
		tenant, err = tenantNamed(ctx, st, *c.Tenant)
	} else if err == nil && c.AllTenants {
		tenant = uuid.Nil
	}
	var p pause.Pause
	if err == nil {
		p, err = st.DeletePause(ctx, tenant, id)
	}
	switch {
	case errors.Is(err, pause.ErrOperators):
		return fmt.Errorf("%s: the pause is of all tenants; leave --tenant out", brief(id.String()))
	case errors.Is(err, push.ErrNotFound):
		return c.print(map[string]any{"resumed": false, "id": nil}, "no pause with the id %s is in force\n", id)
	case err != nil:
		return err
	}
	return c.print(map[string]any{"resumed": true, "id": id}, "resumed %s\n", scopeText(p))
}
