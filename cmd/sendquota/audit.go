package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/sendquota/sendquota/internal/app"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/store"
)

type audit struct {
	Since time.Time `format:"2006-01-02T15:04:05Z07:00" placeholder:"2026-01-31T09:00:00Z" help:"Look only at what was to be sent, or was sent, from then on (RFC 3339). Default: at everything."`
	JSON  bool      `name:"json" help:"Print one JSON object instead of lines."`
}

// exitStatus is an error with an exit status of its own.
type exitStatus struct {
	error
	code int
}

func (e exitStatus) ExitCode() int { return e.code }

func (c audit) Run() error {
	var findings []store.Finding
	err := withStore(func(ctx context.Context, cfg config.Config, st *store.Store) error {
		var err error
		findings, err = st.Audit(ctx, app.Policy(cfg.Policy), c.Since)
		return err
	})
	if err != nil {
		return exitStatus{err, 2}
	}
	if c.JSON {
		if findings == nil {
			findings = []store.Finding{}
		}
		if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"violations": findings}); err != nil {
			return exitStatus{err, 2}
		}
	} else {
		for _, f := range findings {
			fmt.Printf("%s: push %s of tenant %s for %q: %s\n", f.Check, f.Push, f.Tenant, f.Recipient, f.Detail)
		}
	}
	if len(findings) > 0 {
		return exitStatus{fmt.Errorf("%d violations", len(findings)), 1}
	}
	if !c.JSON {
		fmt.Println("no violations")
	}
	return nil
}
