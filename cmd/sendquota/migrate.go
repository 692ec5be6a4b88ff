package main

import (
	"fmt"
	"os"

	"github.com/sendquota/sendquota/internal/app"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/store"
)

type migrate struct{}

func (migrate) Run() error {
	cfg, err := config.LoadTool(os.Environ())
	if err != nil {
		return err
	}
	ctx, stop := app.UntilSignal()
	defer stop()
	applied, err := store.Migrate(ctx, string(cfg.DatabaseURL))
	if err != nil {
		return err
	}
	for _, file := range applied {
		fmt.Println("applied", file)
	}
	if len(applied) == 0 {
		fmt.Println("the database is up to date")
	}
	return nil
}
