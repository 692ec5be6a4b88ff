package store

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// EraseSlowly is Erase, with something that happens between two steps.
func (s *Store) EraseSlowly(ctx context.Context, who quota.Recipient, between func()) (booking.Erased, error) {
	e := s.newErasure(who)
	for i, step := range e.steps() {
		if i > 0 {
			between()
		}
		if err := step(ctx); err != nil {
			return e.Erased, err
		}
	}
	return e.Erased, nil
}

// CutAt has chunks begin at these keys, in ascending order, and reach as far as the next one.
func (p *AuditPass) CutAt(keys []int64) {
	p.cuts, p.state.Walk.Step = keys, mostStep
}

// Result is what was found so far.
func (p *AuditPass) Result() booking.AuditResult { return p.state.AuditResult }

// CampaignStat returns the numbers of a campaign of all time.
func (s *Store) CampaignStat(ctx context.Context, tenant, campaign uuid.UUID) (n push.Stat, err error) {
	err = s.read(ctx, tenant, func(ctx context.Context, c reader) error {
		n, err = campaignStat(ctx, c, tenant, campaign)
		return err
	})
	return n, err
}

// LateBucket is the bucket of an interval, in SQL.
var LateBucket = lateBucket

// PoolSizes are how many connections there may be, for changes and for reads.
func (s *Store) PoolSizes() (changes, reads int32) {
	return s.pool.Config().MaxConns, s.readPool.Config().MaxConns
}

// Rest has the store forget which tenants were at work, and which partitions there are. It fails if the store is closed, or uses a connection.
func (s *Store) Rest(ctx context.Context) error {
	if s.pool.Stat().AcquiredConns()+s.readPool.Stat().AcquiredConns() > 0 {
		return errors.New("a connection is in use")
	}
	s.layouts.forget()
	s.neighbours = bulkhead.Neighbours[uuid.UUID]{}
	return errors.Join(s.pool.Ping(ctx), s.readPool.Ping(ctx))
}

// ForgetLayouts makes the store read the list of partitions again.
func (s *Store) ForgetLayouts() { s.layouts.forget() }

// ReadOnlySessions reports whether what reads for tenants runs in sessions that Postgres lets write nothing.
func (s *Store) ReadOnlySessions(ctx context.Context) (only bool, err error) {
	err = s.readPool.QueryRow(ctx, `SELECT current_setting('transaction_read_only')::bool`).Scan(&only)
	return only, err
}

// counted notes what is asked.
type counted struct {
	batcher
	asked []string
}

func (c *counted) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	for _, q := range b.QueuedQueries {
		c.asked = append(c.asked, q.SQL)
	}
	return c.batcher.SendBatch(ctx, b)
}

// AskedForPush is what Postgres is asked when a tenant reads a push, and the error of that.
func (s *Store) AskedForPush(ctx context.Context, tenant, id uuid.UUID) (asked []string, err error) {
	err = s.repeat(ctx, s.readPool, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		count := &counted{batcher: c}
		_, err := s.readPush(ctx, count, tenant, id)
		asked = count.asked
		return err
	})
	return asked, err
}
