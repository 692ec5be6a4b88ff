package ownchannels

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/tenantchannel"
)

const (
	cancelAtOnce = 500
	deletePause  = 20 * time.Millisecond
	// endingTime is the longest wait for attempts under way, and for transactions that have read an earlier version.
	endingTime = 5 * time.Second
)

// Delete deletes a tenant's channel. If pushes are booked for it, it cancels them, or without cancel returns an
// [*tenantchannel.InUseError] and deletes nothing. With cancel, that error reports attempts under way: the channel accepts and sends nothing
// any more, and another call deletes it. If it reports campaigns in progress, the channel stays.
func (s *Service) Delete(ctx context.Context, tenant uuid.UUID, name string, cancel bool) (deleted tenantchannel.Deleted, err error) {
	defer s.directory.Refresh(tenant)
	d, err := s.store.BeginDelete(ctx, tenant, name, cancel)
	if err != nil {
		return deleted, err
	}
	s.directory.Refresh(tenant)
	if err := s.settle(ctx); err != nil {
		return deleted, errors.Join(err, s.keep(ctx, d, cancel))
	}
	for until := time.Now().Add(endingTime); ; {
		if cancel {
			if err := s.cancelAll(ctx, d); err != nil {
				return deleted, err
			}
		}
		deleted, err = s.store.DeleteChannel(ctx, d)
		if err == nil {
			return deleted, nil
		}
		used := (*tenantchannel.InUseError)(nil)
		if !errors.As(err, &used) || !cancel || used.Campaigns > 0 {
			return deleted, errors.Join(err, s.keep(ctx, d, cancel && used == nil))
		}
		used.Canceling = true
		if time.Now().After(until) {
			return deleted, err
		}
		if err := sleep(ctx, deletePause); err != nil {
			return deleted, err
		}
	}
}

// keep ends a deletion that failed, unless another request shall go on with it, because it may have canceled pushes.
func (s *Service) keep(ctx context.Context, d tenantchannel.Deletion, goesOn bool) error {
	if goesOn {
		return nil
	}
	return s.store.KeepChannel(context.WithoutCancel(ctx), d)
}

// settle waits for the transactions that may have read the channel before it was marked for deletion. It returns
// [tenantchannel.ErrBusy] if they take too long.
func (s *Service) settle(ctx context.Context) error {
	before, err := s.store.Deciders(ctx)
	for until := time.Now().Add(endingTime); err == nil && len(before) > 0 && time.Now().Before(until); {
		if err = sleep(ctx, deletePause); err != nil {
			return err
		}
		var now []string
		now, err = s.store.Deciders(ctx)
		before = slices.DeleteFunc(before, func(id string) bool { return !slices.Contains(now, id) })
	}
	if err == nil && len(before) > 0 {
		return tenantchannel.ErrBusy
	}
	return err
}

// cancelAll cancels all waiting pushes of a channel.
func (s *Service) cancelAll(ctx context.Context, d tenantchannel.Deletion) error {
	for {
		ended, err := s.store.CancelPushes(ctx, d, cancelAtOnce)
		for _, e := range ended {
			if s.cfg.Released != nil {
				s.cfg.Released(e)
			}
		}
		if err != nil || len(ended) == 0 {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
