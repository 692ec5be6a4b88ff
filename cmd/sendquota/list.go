package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/store"
)

// listOfTenant is a command that lists data of one tenant, or of all tenants.
type listOfTenant struct {
	Tenant *string `placeholder:"NAME" help:"Only this tenant. Default: all tenants."`
	jsonFlag
}

// jsonFlag is the flag of every command that prints data.
type jsonFlag struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

// print prints v as JSON with --json, and otherwise the text.
func (f jsonFlag) print(v any, text string, args ...any) error {
	if f.JSON {
		return printJSON(os.Stdout, v)
	}
	_, err := fmt.Printf(text, args...)
	return err
}

func printJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

// withTenant runs work with the tenant's id, or with uuid.Nil for all tenants.
func (c listOfTenant) withTenant(work func(ctx context.Context, st *store.Store, tenant uuid.UUID) error) error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) (err error) {
		var tenant uuid.UUID
		if c.Tenant != nil {
			if tenant, err = tenantNamed(ctx, st, *c.Tenant); err != nil {
				return err
			}
		}
		return work(ctx, st, tenant)
	})
}

// printList prints a list as one JSON object with that name, or as a table with a column for each title.
func printList[T any](w io.Writer, asJSON bool, name string, all []T, titles []string, cells func(T) []string) error {
	if asJSON {
		return printJSON(w, map[string][]T{name: all})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(titles, "\t"))
	for _, one := range all {
		fmt.Fprintln(t, strings.Join(cells(one), "\t"))
	}
	return t.Flush()
}

// timeOrDash formats a time for people; nil is a dash.
func timeOrDash(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.UTC().Format(time.RFC3339)
}

func idOrDash(id *uuid.UUID) string {
	if id == nil {
		return "-"
	}
	return id.String()
}
