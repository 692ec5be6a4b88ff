package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/sendquota/sendquota/internal/app"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/store"
)

type migrate struct {
	jsonFlag
	Contract bool `help:"Also drop the parts that only the previous release uses. Stop all of its programs first."`

	Status bool `help:"Change nothing; list the migrations, and whether each was applied. Exit status: 0 all are, 1 some are not."`

	Wait time.Duration `default:"1m" placeholder:"1m" help:"How long to retry while other sessions hold locks that a migration needs."`
}

// Validate is called by kong.
func (c migrate) Validate() error {
	if c.Wait < time.Second {
		return fmt.Errorf("--wait %s: must be at least a second", duration.Words(c.Wait))
	}
	return nil
}

// Run prints the applied migrations, also if a later one fails.
func (c migrate) Run() error {
	if c.Status {
		return c.status()
	}
	cfg, err := config.LoadTool(os.Environ())
	if err != nil {
		return err
	}
	ctx, stop := app.UntilSignal()
	defer stop()
	applied, err := pg.Migrate(ctx, string(cfg.DatabaseURL), pg.MigrateConfig{Wait: c.Wait, Contract: c.Contract, Tell: tell})
	shown := map[string]any{"applied": append([]string{}, applied...)}
	if err != nil || len(applied) > 0 {
		text := ""
		for _, file := range applied {
			text += "applied " + file + "\n"
		}
		return errors.Join(err, c.print(shown, "%s", text))
	}
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		newer, err := st.Newer(ctx)
		if err != nil {
			return err
		}
		return c.print(shown, "%s\n", cmp.Or(newer, "the database is up to date"))
	})
}

// status lists the migrations. Migrations that contract the schema may be missing.
func (c migrate) status() error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		all, err := st.Migrations(ctx)
		if err != nil {
			return err
		}
		missing := 0
		for _, m := range all {
			if !m.Applied && !m.Contracts {
				missing++
			}
		}
		err = printList(os.Stdout, c.JSON, "migrations", all, []string{"MIGRATION", "APPLIED"}, func(m pg.Migration) []string {
			return []string{m.File, map[bool]string{true: "yes", false: "no"}[m.Applied]}
		})
		if err == nil && missing > 0 {
			err = fmt.Errorf("%d migrations are missing; run: sendquota migrate", missing)
		}
		return err
	})
}

func tell(line string) { fmt.Fprintln(os.Stderr, line) }
