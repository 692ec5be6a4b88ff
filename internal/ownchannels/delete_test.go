package ownchannels

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/tenantchannel"
)

// deleting is a store that records the steps of a deletion.
type deleting struct {
	Store
	steps     []string
	deciding  bool // a transaction that has read the channel does not end
	waits     int  // pushes to cancel
	canceled  int
	inFlight  int // tries of the deletion that find an attempt under way
	campaigns int // in progress
	err       error
}

func (d *deleting) BeginDelete(context.Context, uuid.UUID, string, bool) (tenantchannel.Deletion, error) {
	d.steps = append(d.steps, "begin")
	return tenantchannel.Deletion{}, nil
}

func (d *deleting) KeepChannel(ctx context.Context, _ tenantchannel.Deletion) error {
	d.steps = append(d.steps, "keep")
	return ctx.Err()
}

func (d *deleting) Deciders(context.Context) ([]string, error) {
	if d.deciding {
		return []string{"1"}, d.err
	}
	return nil, d.err
}

func (d *deleting) CancelPushes(context.Context, tenantchannel.Deletion, int) ([]booking.Ended, error) {
	ended := make([]booking.Ended, d.waits)
	d.canceled += d.waits
	d.waits = 0
	return ended, nil
}

func (d *deleting) DeleteChannel(context.Context, tenantchannel.Deletion) (tenantchannel.Deleted, error) {
	so := tenantchannel.Deleted{Canceled: d.canceled}
	d.steps = append(d.steps, "delete")
	if d.inFlight--; d.inFlight >= 0 {
		return so, &tenantchannel.InUseError{Pushes: 1, Canceled: d.canceled}
	}
	if d.campaigns > 0 {
		return so, &tenantchannel.InUseError{Campaigns: d.campaigns}
	}
	return so, nil
}

// TestService_Delete: a deletion that may not cancel pushes leaves the channel as it was if it fails. One that may goes on until the attempts
// under way have ended, and leaves its mark if that takes too long. If a campaign was started meanwhile, the channel stays.
func TestService_Delete(t *testing.T) {
	t.Parallel()
	lost := errors.New("the connection was lost")
	inUse := &tenantchannel.InUseError{}
	for name, c := range map[string]struct {
		store    deleting
		cancel   bool
		want     []string
		canceled int
		err      func(error) bool
	}{
		"unused":                    {deleting{}, false, []string{"begin", "delete"}, 0, nil},
		"in use":                    {deleting{inFlight: 1}, false, []string{"begin", "delete", "keep"}, 0, func(err error) bool { return errors.As(err, &inUse) }},
		"canceled":                  {deleting{waits: 3, inFlight: 2}, true, []string{"begin", "delete", "delete", "delete"}, 3, nil},
		"an attempt does not end":   {deleting{waits: 3, inFlight: 1e6}, true, []string{"begin"}, 3, func(err error) bool { return errors.As(err, &inUse) }},
		"a campaign was started":    {deleting{waits: 3, campaigns: 1}, true, []string{"begin", "delete", "keep"}, 3, func(err error) bool { return errors.As(err, &inUse) }},
		"a booking does not end":    {deleting{deciding: true}, false, []string{"begin", "keep"}, 0, func(err error) bool { return errors.Is(err, tenantchannel.ErrBusy) }},
		"a booking, with cancel":    {deleting{deciding: true}, true, []string{"begin"}, 0, func(err error) bool { return errors.Is(err, tenantchannel.ErrBusy) }},
		"Postgres does not answer":  {deleting{err: lost}, false, []string{"begin", "keep"}, 0, func(err error) bool { return errors.Is(err, lost) }},
		"no answer, and may cancel": {deleting{err: lost}, true, []string{"begin"}, 0, func(err error) bool { return errors.Is(err, lost) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := NewService(&c.store, NewDirectory(&channel.Set{}, nil, nil, nil, config.TenantChannels{}, time.Minute, slog.New(slog.DiscardHandler)), ServiceConfig{})
				deleted, err := s.Delete(t.Context(), uuid.New(), "mine", c.cancel)
				if c.err == nil && err != nil || c.err != nil && !c.err(err) || deleted.Canceled != c.canceled {
					t.Errorf("%d canceled, and %v", deleted.Canceled, err)
				}
				steps := slices.Compact(c.store.steps)
				if want := slices.Compact(c.want); name != "an attempt does not end" && !slices.Equal(c.store.steps, c.want) || !slices.Equal(steps[:min(len(steps), len(want))], want) {
					t.Errorf("the steps are %v, want %v", steps, want)
				}
				if c.cancel && c.store.campaigns == 0 && slices.Contains(steps, "keep") {
					t.Error("a deletion that has canceled pushes was given up")
				}
			})
		})
	}
}
