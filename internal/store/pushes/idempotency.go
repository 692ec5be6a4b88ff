package pushes

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// KeyLifetime limits how long the result of a request with an Idempotency-Key is kept. After that the key can be used again.
const KeyLifetime = 30 * 24 * time.Hour

// keyedSQL reads the results of keys.
const keyedSQL = `
	SELECT idempotency_id, member, hash, tenant_id, push_id
	FROM {idempotency} k WHERE idempotency_id = ANY ($1::uuid[]) AND created_at > now() - interval '30 days'`

// keyedTablesSQL returns keyedSQL for the tables that hold keys younger than [KeyLifetime].
func keyedTablesSQL(l *pg.Layouts) string {
	since, until := l.Now()
	return pg.In(keyedSQL, "{idempotency}", l.Keys().All(since.Add(-KeyLifetime-pg.ClockGap), until.Add(pg.ClockGap))...)
}

func collectKeyed(row pgx.CollectableRow) (k booking.Keyed, err error) {
	return k, row.Scan(&k.Key, &k.Member, &k.Hash, &k.Tenant, &k.ID)
}

func requestLock(id uuid.UUID) int64 { return int64(binary.BigEndian.Uint64(id[8:])) }

// insertKeyedSQL stores the results of keys.
const insertKeyedSQL = `
	INSERT INTO idempotency (idempotency_id, member, push_id, tenant_id, hash, send_at, created_at)
	SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::bytea[], $6::timestamptz[], $7::timestamptz[])`

// queueKeyed adds a statement that stores the results of the granted pushes' keys to a batch, if any has a key.
func queueKeyed(b *pgx.Batch, granted []*booking.Decision) {
	var (
		keys, members, ids, tenants []uuid.UUID
		hashes                      [][]byte
		sendAt, created             []time.Time
	)
	for i := range granted {
		p := &granted[i].Push
		if p.IdempotencyID == uuid.Nil {
			continue
		}
		keys, members, ids, tenants = append(keys, p.IdempotencyID), append(members, p.RequestMember), append(ids, p.ID), append(tenants, p.Tenant)
		hashes, sendAt, created = append(hashes, p.IdempotencyHash), append(sendAt, p.SendAt), append(created, p.CreatedAt)
	}
	if len(keys) > 0 {
		b.Queue(insertKeyedSQL, keys, members, ids, tenants, hashes, sendAt, created)
	}
}

// Keyed returns the results of the Idempotency-Key with this id, one for each push.
func (s *Store) Keyed(ctx context.Context, tenant, key uuid.UUID) (all []booking.Keyed, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		b := &pgx.Batch{}
		b.Queue(keyedTablesSQL(&s.db.Layouts), []uuid.UUID{key})
		res := c.SendBatch(ctx, b)
		defer res.Close()
		rows, _ := res.Query()
		all, err = pgx.CollectRows(rows, collectKeyed)
		return err
	})
	return all, err
}

// readReplayed completes the decisions that replay an earlier request with its pushes. The recipients are the drafts': a
// repeated request has the same ones. A push may have been removed before its key; that decision becomes [booking.Gone].
func (s *Store) readReplayed(ctx context.Context, drafts []booking.Draft, decisions []booking.Decision) error {
	var (
		tenant uuid.UUID
		ids    []Ref
	)
	for i, v := range decisions {
		if v.Outcome == booking.Replayed {
			tenant, ids = v.Push.Tenant, append(ids, RefOf(v.Push.ID, keyOf(&drafts[i])))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	found := make(map[uuid.UUID]push.Push, len(ids))
	err := s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		pushes, err := s.ReadPushes(ctx, c, ids)
		for _, p := range pushes {
			found[p.ID] = p.Push
		}
		return err
	})
	for i := range decisions {
		if v := &decisions[i]; v.Outcome == booking.Replayed {
			if p, ok := found[v.Push.ID]; ok && !erased(p) {
				v.Push = p
			} else {
				v.Outcome = booking.Gone
			}
		}
	}
	return err
}
