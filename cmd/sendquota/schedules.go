package main

import (
	"context"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/store"
)

type listSchedules struct{ listOfTenant }

func (c listSchedules) Run() error {
	return c.withTenant(func(ctx context.Context, st *store.Store, tenant uuid.UUID) error {
		views := []scheduleView{}
		err := st.AllSchedules(ctx, tenant, func(tenant string, p recurrence.Schedule) error {
			views = append(views, scheduleViewOf(tenant, &p))
			return nil
		})
		if err != nil {
			return err
		}
		titles := []string{"ID", "TENANT", "STATUS", "CRON", "TIME ZONE", "NEXT", "UNTIL", "CAMPAIGN", "NAME"}
		return printList(os.Stdout, c.JSON, "schedules", views, titles, func(v scheduleView) []string {
			return []string{v.ID.String(), v.Tenant, v.Status, v.Cron, v.TimeZone, timeOrDash(v.NextAt), timeOrDash(v.Until), idOrDash(v.Campaign), v.Name}
		})
	})
}

// scheduleView has null for a missing time, and for the campaign of a schedule of single pushes. It names no recipient.
type scheduleView struct {
	ID        uuid.UUID          `json:"id"`
	Tenant    string             `json:"tenant"`
	Name      string             `json:"name"`
	Status    string             `json:"status"`
	Cron      string             `json:"cron"`
	TimeZone  string             `json:"time_zone"`
	CatchUp   recurrence.CatchUp `json:"catch_up"`
	NextAt    *time.Time         `json:"next_at"`
	Until     *time.Time         `json:"until"`
	Campaign  *uuid.UUID         `json:"campaign"` // the pattern
	CreatedAt time.Time          `json:"created_at"`
}

func scheduleViewOf(tenant string, p *recurrence.Schedule) scheduleView {
	v := scheduleView{
		ID: p.ID, Tenant: tenant, Name: p.Name, Status: p.Status(), Cron: p.Cron, TimeZone: p.TimeZone, CatchUp: p.CatchUp,
		Until: orNil(p.Until), CreatedAt: p.CreatedAt,
	}
	if p.Campaign != uuid.Nil {
		v.Campaign = &p.Campaign
	}
	if v.Status == recurrence.Active {
		v.NextAt = orNil(p.NextAt)
	}
	return v
}

func orNil(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
