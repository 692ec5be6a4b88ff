package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/sendquota/sendquota/internal/app"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/store"
)

type migrate struct {
	jsonFlag
	Contract bool `help:"Also drop what only programs of the release before use: none of them may be at work any more."`

	Wait time.Duration `default:"1m" placeholder:"1m" help:"For how long to try while other sessions hold locks that a migration needs."`
}

// Validate is called by kong.
func (c migrate) Validate() error {
	if c.Wait < time.Second {
		return fmt.Errorf("--wait %s: must be a second at least", c.Wait)
	}
	return nil
}

// Run prints what was applied, also if a later migration fails.
func (c migrate) Run() error {
	cfg, err := config.LoadTool(os.Environ())
	if err != nil {
		return err
	}
	ctx, stop := app.UntilSignal()
	defer stop()
	applied, err := store.Migrate(ctx, string(cfg.DatabaseURL), store.MigrateConfig{Wait: c.Wait, Contract: c.Contract, Tell: tell})
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

func tell(line string) { fmt.Fprintln(os.Stderr, line) }
