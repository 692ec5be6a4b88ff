package main

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/store"
)

type createTenant struct {
	Name string `arg:"" help:"Name of the tenant: 1 to 100 printable characters."`
}

// Validate is called by kong.
func (c createTenant) Validate() error {
	if c.Name == "" || len([]rune(c.Name)) > 100 || strings.ContainsFunc(c.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("name %q: must be 1 to 100 printable characters", c.Name)
	}
	return nil
}

func (c createTenant) Run() error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		id, created, err := st.CreateTenant(ctx, c.Name)
		if err != nil {
			return err
		}
		verb := map[bool]string{true: "created", false: "exists already"}[created]
		fmt.Printf("tenant %s %s, id %s\n", c.Name, verb, id)
		return nil
	})
}
