package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/store/accounts"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/app"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

type renameTenant struct {
	jsonFlag
	Name string `arg:"" help:"Name of the tenant."`
	To   string `arg:"" help:"Its new name: 1 to 100 printable characters."`
}

// Validate is called by kong.
func (c renameTenant) Validate() error { return createTenant{Name: c.To}.Validate() }

// Help explains the use of a tenant's name.
func (renameTenant) Help() string {
	return "Only people and this tool use the name: keys and pushes do not change. If console.oidc.tenant of SENDQUOTA_CONFIG is the old name, change it, too."
}

func (c renameTenant) Run() error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		tenant, err := tenantNamed(ctx, st, c.Name)
		if err != nil {
			return err
		}
		if err := st.RenameTenant(ctx, tenant, c.To); errors.Is(err, accounts.ErrNameTaken) {
			return fmt.Errorf("there is another tenant %s; see: sendquota tenants list", brief(c.To))
		} else if err != nil {
			return err
		}
		return c.print(map[string]any{"id": tenant, "name": c.To}, "tenant %s is renamed to %s\n", c.Name, c.To)
	})
}

type deleteTenant struct {
	jsonFlag
	Name string `arg:"" help:"Name of the tenant."`
	Yes  bool   `short:"y" help:"Do not ask for the name again. Needed without a terminal."`
}

// Help lists the steps of a deletion.
func (deleteTenant) Help() string {
	return `The first step ends the tenant's keys, sessions, webhooks, schedules and campaigns: from then on nothing is accepted and nothing is sent for it. API processes notice within a second. The deletion waits for attempts under way.

Then all data of the tenant is deleted in small steps: pushes, attempts, recipients, campaigns, schedules, webhooks, keys, users, policies, statistics, its part of the audit log, and, if REDIS_URL is set, its keys in Redis. It takes at least a minute. If it is interrupted, run it again: it continues with the rest. A deletion cannot be undone: see sendquota tenants export.`
}

func (c deleteTenant) Run() error {
	return withStore(func(ctx context.Context, cfg config.Config, st *store.Store) error {
		if err := c.confirm(ctx, st); err != nil {
			return err
		}
		tenant, err := st.BeginDeletion(ctx, c.Name)
		if errors.Is(err, push.ErrNotFound) {
			return fmt.Errorf("there is no tenant %s; see: sendquota tenants list", brief(c.Name))
		}
		if err != nil {
			return err
		}
		rows, err := c.delete(ctx, st, tenant)
		if err != nil {
			return fmt.Errorf("the tenant %s is not deleted yet, and nothing is accepted or sent for it; continue with: sendquota tenants delete %[1]s: %w", brief(c.Name), err)
		}
		if cfg.RedisURL != "" {
			if _, err := app.ForgetTenant(ctx, cfg.RedisURL, st, tenant); err != nil {
				fmt.Fprintf(os.Stderr, "could not delete the tenant's keys in Redis; they expire within ten minutes: %v\n", err)
			}
		}
		return c.print(map[string]any{"id": tenant, "name": c.Name, "rows": rows}, "tenant %s is deleted, with %d rows\n", c.Name, rows)
	})
}

// confirm asks for the name of the tenant, unless --yes is given.
func (c deleteTenant) confirm(ctx context.Context, st *store.Store) error {
	if c.Yes {
		return nil
	}
	if !watched(os.Stdin) {
		return errors.New("--yes is needed without a terminal: all data of the tenant is deleted")
	}
	fmt.Fprintf(os.Stderr, "All data of the tenant %s is deleted, which cannot be undone. Type its name to continue: ", c.Name)
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if ctx.Err() != nil || strings.TrimRight(line, "\r\n") != c.Name {
		return errors.New("the name does not match; nothing was deleted")
	}
	return nil
}

// deletionPause is the pause between two checks whether a deletion can continue.
const deletionPause = 500 * time.Millisecond

// delete deletes rows until the tenant has none left, and returns their number.
func (c deleteTenant) delete(ctx context.Context, st *store.Store, tenant uuid.UUID) (rows int64, err error) {
	told := ""
	for {
		left, err := st.ContinueDeletion(ctx, tenant, func(n int64) { rows += n })
		if err != nil || left.Ended {
			return rows, err
		}
		line := "waiting up to a minute for requests under way"
		if left.UnderWay > 0 {
			line = fmt.Sprintf("waiting for %d attempts under way", left.UnderWay)
		}
		if line != told {
			told = line
			fmt.Fprintln(os.Stderr, line)
		}
		select {
		case <-ctx.Done():
			return rows, ctx.Err()
		case <-time.After(deletionPause):
		}
	}
}
