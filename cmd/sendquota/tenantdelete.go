package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

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

// Help tells what a name is used for.
func (renameTenant) Help() string {
	return "Keys, pushes and all else stay as they are: only people and this tool use the name. If console.oidc.tenant of SENDQUOTA_CONFIG is the old name, change it, too."
}

func (c renameTenant) Run() error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		tenant, err := tenantNamed(ctx, st, c.Name)
		if err != nil {
			return err
		}
		if err := st.RenameTenant(ctx, tenant, c.To); errors.Is(err, store.ErrNameTaken) {
			return fmt.Errorf("there is another tenant %s; see: sendquota tenants list", brief(c.To))
		} else if err != nil {
			return err
		}
		return c.print(map[string]any{"id": tenant, "name": c.To}, "tenant %s is called %s\n", c.Name, c.To)
	})
}

type deleteTenant struct {
	jsonFlag
	Name string `arg:"" help:"Name of the tenant."`
	Yes  bool   `short:"y" help:"Do not ask for the name again. Needed without a terminal."`
}

// Help tells what is deleted, and when.
func (deleteTenant) Help() string {
	return `The first step ends the tenant's keys, sessions, webhooks, schedules and campaigns: from then on nothing is accepted and nothing is sent for it. API processes notice within a second. Attempts under way end as they will, and the deletion waits for them.

Then everything of the tenant is deleted in small steps: pushes, attempts, recipients, campaigns, schedules, webhooks, keys, users, policies, statistics, its part of the audit log, and, if REDIS_URL is set, its keys in Redis. It takes a minute at least. If it breaks off, run it again: it goes on with what is left. Nothing can be brought back: see sendquota tenants export.`
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
			return fmt.Errorf("the tenant %s is not deleted yet, and nothing is accepted or sent for it; go on with: sendquota tenants delete %[1]s: %w", brief(c.Name), err)
		}
		if cfg.RedisURL != "" {
			if _, err := app.ForgetTenant(ctx, cfg.RedisURL, st, tenant); err != nil {
				fmt.Fprintf(os.Stderr, "its keys in Redis are not deleted, and expire within ten minutes: %v\n", err)
			}
		}
		return c.print(map[string]any{"id": tenant, "name": c.Name, "rows": rows}, "tenant %s is deleted, with %d rows\n", c.Name, rows)
	})
}

// confirm asks for the name of a tenant that exists.
func (c deleteTenant) confirm(ctx context.Context, st *store.Store) error {
	if c.Yes {
		return nil
	}
	if !watched(os.Stdin) {
		return errors.New("--yes is needed without a terminal: everything of the tenant is deleted")
	}
	fmt.Fprintf(os.Stderr, "Everything of the tenant %s is deleted, and cannot be brought back. Type its name to go on: ", c.Name)
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if ctx.Err() != nil || strings.TrimRight(line, "\r\n") != c.Name {
		return errors.New("that is not its name; nothing was deleted")
	}
	return nil
}

// deletionPause is the time between two looks at what a deletion waits for.
const deletionPause = 500 * time.Millisecond

// delete deletes rows until nothing of the tenant is left, and returns how many.
func (c deleteTenant) delete(ctx context.Context, st *store.Store, tenant uuid.UUID) (rows int64, err error) {
	told := ""
	for {
		left, err := st.ContinueDeletion(ctx, tenant, func(n int64) { rows += n })
		if err != nil || left.Ended {
			return rows, err
		}
		line := "waiting for requests that were under way, for up to a minute"
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
