package main

import (
	"context"
	"errors"
	"os"
	"strconv"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/store"
)

type topTenants struct {
	jsonFlag
	Limit int `default:"10" help:"The maximum number of tenants."`
}

// Validate is called by kong.
func (c topTenants) Validate() error {
	if c.Limit < 1 {
		return errors.New("--limit must be at least 1")
	}
	return nil
}

// loadView is the load of a tenant in JSON.
type loadView struct {
	ID        uuid.UUID `json:"id"`
	Name      string    `json:"name"`
	Due       int64     `json:"due"`
	Accepted  int64     `json:"accepted"`
	Refused   int64     `json:"refused"`
	Ended     int64     `json:"ended"`
	Campaigns int64     `json:"campaigns"`
}

func (c topTenants) Run() error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		top, err := st.TopTenants(ctx, c.Limit)
		if err != nil {
			return err
		}
		views := make([]loadView, len(top))
		for i, t := range top {
			views[i] = loadView(t)
		}
		titles := []string{"NAME", "DUE", "ACCEPTED", "REFUSED", "ENDED", "CAMPAIGNS"}
		return printList(os.Stdout, c.JSON, "tenants", views, titles, func(t loadView) []string {
			cells := []string{t.Name}
			for _, n := range []int64{t.Due, t.Accepted, t.Refused, t.Ended, t.Campaigns} {
				cells = append(cells, strconv.FormatInt(n, 10))
			}
			return cells
		})
	})
}
