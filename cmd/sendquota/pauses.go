package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/accounts"
)

// pauseTarget names what is paused or resumed: a tenant or all of them, and a part of their sending.
type pauseTarget struct {
	Tenant     *string `placeholder:"NAME" xor:"tenant" help:"The tenant."`
	AllTenants bool    `xor:"tenant" help:"All tenants. They see the pause, and cannot end it."`
	All        bool    `xor:"scope" help:"Everything."`
	Channel    *string `placeholder:"NAME" xor:"scope" help:"The pushes through this channel."`
	Category   *string `placeholder:"NAME" xor:"scope" help:"The pushes of this category."`
	Campaign   *string `placeholder:"ID" xor:"scope" help:"The pushes of this campaign, of the tenant."`
}

// check returns an error unless the flags name a tenant, or all, and one scope.
func (t pauseTarget) check() error {
	var errs []error
	if t.Tenant == nil && !t.AllTenants {
		errs = append(errs, errors.New("expected --tenant or --all-tenants"))
	}
	if !t.All && t.Channel == nil && t.Category == nil && t.Campaign == nil {
		errs = append(errs, errors.New("expected --all, --channel, --category or --campaign"))
	}
	for flag, given := range map[string]*string{"--channel": t.Channel, "--category": t.Category} {
		if given != nil && (quota.Name(*given) == "" || len(*given) > 64) {
			errs = append(errs, fmt.Errorf("%s %s: must be a name of 1 to 64 bytes", flag, brief(*given)))
		}
	}
	if t.Campaign != nil {
		if _, err := uuid.Parse(*t.Campaign); err != nil {
			errs = append(errs, fmt.Errorf("--campaign %s: must be the id of a campaign", brief(*t.Campaign)))
		} else if t.AllTenants {
			errs = append(errs, errors.New("--campaign needs --tenant: a campaign belongs to one tenant"))
		}
	}
	return errors.Join(errs...)
}

// pause returns the pause that the flags name.
func (t pauseTarget) pause(ctx context.Context, st *store.Store) (p pause.Pause, of string, err error) {
	of = "all tenants"
	if t.Tenant != nil {
		of = "tenant " + *t.Tenant
		if p.Tenant, err = tenantNamed(ctx, st, *t.Tenant); err != nil {
			return p, of, err
		}
	}
	switch {
	case t.Channel != nil:
		p.Scope, p.Name = pause.Channel, quota.Name(*t.Channel)
	case t.Category != nil:
		p.Scope, p.Name = pause.Category, quota.Name(*t.Category)
	case t.Campaign != nil:
		p.Scope, p.Name = pause.Campaign, uuid.MustParse(*t.Campaign).String()
	default:
		p.Scope = pause.All
	}
	return p, of, nil
}

// never is the --until of a pause without an end.
const never = "never"

type pauseSending struct {
	jsonFlag
	pauseTarget
	Reason *string `placeholder:"TEXT" help:"Why; tenants see it. Without it, a pause that is in force keeps its reason."`
	Until  string  `placeholder:"TIME" help:"The end of the pause, such as 2026-12-01T09:00:00Z, or a duration from now, such as 2h; never: until resume. Default: until resume; a pause that is in force keeps its end."`
}

// Validate is called by kong.
func (c pauseSending) Validate() error {
	errs := []error{c.check()}
	if _, err := c.until(time.Now()); err != nil {
		errs = append(errs, err)
	}
	if c.Reason != nil && len(*c.Reason) > 500 {
		errs = append(errs, fmt.Errorf("--reason: must have at most 500 bytes, has %d", len(*c.Reason)))
	}
	return errors.Join(errs...)
}

// until returns the end of the pause; zero: it has none.
func (c pauseSending) until(now time.Time) (at time.Time, err error) {
	if c.Until == "" || c.Until == never {
		return at, nil
	}
	if at, err = time.Parse(time.RFC3339, strings.ToUpper(c.Until)); err != nil {
		d, wrong := duration.Parse(c.Until)
		if wrong != nil || d <= 0 {
			return at, fmt.Errorf("--until %s: must be a time such as 2026-12-01T09:00:00Z, a duration such as 2h, or never", brief(c.Until))
		}
		at = now.Add(d)
	}
	if !at.After(now) {
		return at, fmt.Errorf("--until %s: must be in the future", brief(c.Until))
	}
	return at.UTC(), nil
}

// Run stops sending.
func (c pauseSending) Run() error {
	return withStore(func(ctx context.Context, cfg config.Config, st *store.Store) error {
		p, of, err := c.pause(ctx, st)
		if err != nil {
			return err
		}
		if p.ID = uuid.Must(uuid.NewV7()); c.Reason != nil {
			p.Reason = *c.Reason
		}
		if p.Until, err = c.until(time.Now()); err != nil {
			return err
		}
		if p.Scope == pause.Channel {
			if err := checkChannel(ctx, cfg, st, p); err != nil {
				return err
			}
		}
		made, found, err := st.CreatePause(ctx, p, pause.Given{Reason: c.Reason != nil, Until: c.Until != ""})
		if err != nil {
			return err
		}
		text := "paused %s of %s%s; no attempt begins from two seconds on\n"
		if found {
			text = "%s of %s is paused already%s\n"
		}
		v := pauseViewOf(made)
		if v.Warning, err = warningOf(ctx, cfg, st, made); err != nil {
			return err
		}
		if v.Warning != "" {
			fmt.Fprintln(os.Stderr, "warning:", v.Warning)
		}
		return c.print(v, text, scopeText(made), of, untilText(made))
	})
}

// checkChannel returns an error unless the settings, or the tenant of a pause, have its channel. A pause of a channel that does
// not exist would stop nothing.
func checkChannel(ctx context.Context, cfg config.Config, st *store.Store, p pause.Pause) error {
	var names []string
	for _, one := range cfg.Channels {
		names = append(names, one.Name)
	}
	if p.Tenant != uuid.Nil {
		own, err := st.OwnChannels(ctx, p.Tenant)
		if err != nil {
			return err
		}
		names = nil
		for _, one := range cfg.Channels {
			if one.Offered(own.Name) {
				names = append(names, one.Name)
			}
		}
		for _, one := range own.Channels {
			if !slices.Contains(names, one.Name) {
				names = append(names, one.Name)
			}
		}
	}
	if wrong := invalid.UnknownName("channel", p.Name, names); wrong != "" {
		return fmt.Errorf("--channel %s: %s", brief(p.Name), wrong)
	}
	return nil
}

// warningOf returns why a pause may not stop what was meant, or "".
func warningOf(ctx context.Context, cfg config.Config, st *store.Store, p pause.Pause) (string, error) {
	if p.Scope != pause.Category {
		return "", nil
	}
	known, err := st.UsedCategories(ctx, p.Tenant)
	if err != nil {
		return "", err
	}
	file := p.Tenant == uuid.Nil
	err = st.EachTenant(ctx, p.Tenant, func(t accounts.TenantInfo) error {
		v, err := st.Policy(ctx, t.ID)
		if v.Document != nil {
			known = append(known, v.Document.CategoryNames()...)
		}
		file = file || v.Document == nil
		return err
	})
	if file {
		known = append(known, cfg.Policy.Document.CategoryNames()...)
	}
	return p.Warning(known), err
}

// pauseView has null for a missing name, end and tenant.
type pauseView struct {
	ID        uuid.UUID   `json:"id"`
	Tenant    *uuid.UUID  `json:"tenant"` // null: all tenants
	Scope     pause.Scope `json:"scope"`
	Name      *string     `json:"name"`
	Reason    string      `json:"reason"`
	Until     *time.Time  `json:"until"`
	CreatedAt time.Time   `json:"created_at"`
	Warning   string      `json:"warning,omitempty"`
}

func pauseViewOf(p pause.Pause) pauseView {
	v := pauseView{ID: p.ID, Scope: p.Scope, Reason: p.Reason, Until: orNil(p.Until), CreatedAt: p.CreatedAt}
	if p.Tenant != uuid.Nil {
		v.Tenant = &p.Tenant
	}
	if p.Name != "" {
		v.Name = &p.Name
	}
	return v
}

func scopeText(p pause.Pause) string {
	if p.Scope == pause.All {
		return "everything"
	}
	return string(p.Scope) + " " + p.Name
}

func untilText(p pause.Pause) string {
	if p.Until.IsZero() {
		return ""
	}
	return " until " + p.Until.UTC().Format(time.RFC3339)
}
