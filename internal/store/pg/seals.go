package pg

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/seal"
)

// sealedColumn is a column of sealed values (internal/seal) in a table with id and tenant_id. An empty value means
// none.
type sealedColumn struct {
	table, column string
	lost          string // further assignments when a lost value is cleared
}

var sealedColumns = []sealedColumn{
	{"webhooks", "secret", `disabled_reason = CASE WHEN disabled_at IS NULL THEN 'its secret was lost: rotate the secret, then enable the webhook' ELSE disabled_reason END,
		disabled_at = coalesce(disabled_at, clock_timestamp())`},
	{"webhooks", "old_secret", `old_secret_until = NULL`},
	{"tenant_channels", "secret", `secret_times = '{}', disabled = true, settings = settings || '{"disabled": true}'`}, // without a password it might send unauthenticated
}

// resealedAtOnce is the number of values that one transaction of [DB.Reseal] seals.
const resealedAtOnce = 100

// LostSecret is a sealed value that no key opens.
type LostSecret struct {
	seal.Cell
	Err    error // of the try to open it
	sealed []byte
}

// SealsError reports sealed values that no key of the program opens.
type SealsError struct {
	Sealed, Opened int
	noKey          bool
}

// Error returns one sentence, which ends with what to do.
func (e *SealsError) Error() string {
	if e.noKey {
		return fmt.Sprintf("the database has sealed secrets of webhooks and channels (%d), but %s is not set: set it to the key that sealed them; see docs/operations.md", e.Sealed, seal.KeyVariable)
	}
	return fmt.Sprintf("%s does not open %d of %d sealed secrets of webhooks and channels in the database: set it, or %s, to the key that sealed them; see docs/operations.md",
		seal.KeyVariable, e.Sealed-e.Opened, e.Sealed, seal.PreviousVariable)
}

// CheckSeals returns a [*SealsError] if the keys do not open all sealed values.
func (s *DB) CheckSeals(ctx context.Context) error {
	return OnConn(ctx, s.Pool, func(c *pgxpool.Conn) error { return checkSeals(ctx, c.Conn(), s.Cfg.Sealer) })
}

func checkSeals(ctx context.Context, c *pgx.Conn, sealer *seal.Sealer) error {
	e := &SealsError{noKey: sealer == nil}
	for _, of := range sealedColumns {
		err := of.each(ctx, c, nil, uuid.Nil, nil, func(sealed []byte, at seal.Cell) {
			e.Sealed++
			if _, err := sealer.Open(sealed, at); err == nil {
				e.Opened++
			}
		})
		if err != nil {
			return err
		}
	}
	if e.Opened == e.Sealed {
		return nil
	}
	return e
}

// each calls f with the values of the rows after an id, in the order of ids. It skips values that begin with prefix. A
// nil limit means no limit.
func (of sealedColumn) each(ctx context.Context, c *pgx.Conn, prefix []byte, after uuid.UUID, limit *int, f func(sealed []byte, at seal.Cell)) error {
	rows, _ := c.Query(ctx, fmt.Sprintf(`
		SELECT id, tenant_id, %[1]s FROM %[2]s WHERE id > $1 AND %[1]s <> '' AND substr(%[1]s, 1, $2) <> coalesce($3, ''::bytea) ORDER BY id LIMIT $4`, of.column, of.table),
		after, seal.PrefixBytes, prefix, limit)
	var (
		at     = seal.Cell{Table: of.table, Column: of.column}
		sealed []byte
	)
	_, err := pgx.ForEachRow(rows, []any{&at.Row, &at.Tenant, &sealed}, func() error {
		f(sealed, at)
		return nil
	})
	return err
}

// Reseal seals the values of older keys with the first key, in small transactions. It calls done with the number of
// values of each transaction. It leaves values that change meanwhile, and values that no key opens, and returns the
// latter.
func (s *DB) Reseal(ctx context.Context, done func(n int)) (lost []LostSecret, err error) {
	if s.Cfg.Sealer == nil {
		return nil, seal.ErrNoKey
	}
	for again := true; again; { // another program may still seal values with an older key
		again, lost = false, nil
		for _, of := range sealedColumns {
			for after, more := uuid.Nil, true; more; {
				var p resealed
				if p, err = s.resealSome(ctx, of, after); err != nil {
					return nil, err
				}
				done(p.changed)
				again = again || p.opened > 0
				lost = append(lost, p.lost...)
				after, more = p.last, p.last != uuid.Nil
			}
		}
	}
	return lost, nil
}

// resealed is the result of one transaction of [DB.Reseal].
type resealed struct {
	last            uuid.UUID // the last row that was read; Nil: none
	opened, changed int
	lost            []LostSecret
}

func (s *DB) resealSome(ctx context.Context, of sealedColumn, after uuid.UUID) (p resealed, err error) {
	limit := resealedAtOnce
	swap := fmt.Sprintf(`UPDATE %[1]s SET %[2]s = $3 WHERE id = $1 AND %[2]s = $2`, of.table, of.column)
	err = s.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		p = resealed{}
		b, changed := &pgx.Batch{}, 0
		err := of.each(ctx, c.Conn(), s.Cfg.Sealer.Prefix(), after, &limit, func(sealed []byte, at seal.Cell) {
			p.last = at.Row
			plain, err := s.Cfg.Sealer.Open(sealed, at)
			if err != nil {
				p.lost = append(p.lost, LostSecret{at, err, sealed})
				return
			}
			p.opened++
			fresh, _ := s.Cfg.Sealer.Seal(plain, at) // cannot fail: there is a key
			b.Queue(swap, at.Row, sealed, fresh).Exec(func(tag pgconn.CommandTag) error {
				changed += int(tag.RowsAffected())
				return nil
			})
		})
		if err == nil && b.Len() > 0 {
			err = c.SendBatch(ctx, b).Close()
			p.changed = changed
		}
		return err
	})
	return p, err
}

// ForgetSecrets clears values that no key opens. A webhook without its secret is disabled until it gets another one, and
// a channel sends nothing until it gets another one. A value that has changed meanwhile stays.
func (s *DB) ForgetSecrets(ctx context.Context, lost []LostSecret) error {
	return s.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		b := &pgx.Batch{}
		var channels []uuid.UUID
		for _, l := range lost {
			if l.Table == "tenant_channels" {
				channels = append(channels, l.Row)
			}
			for _, of := range sealedColumns {
				if of.table == l.Table && of.column == l.Column {
					b.Queue(fmt.Sprintf(`UPDATE %[1]s SET %[2]s = '', %[3]s WHERE id = $1 AND %[2]s = $2`, of.table, of.column, of.lost), l.Row, l.sealed)
				}
			}
		}
		if len(channels) > 0 { // programs that have them open learn of it
			b.Queue(`
				WITH next AS (UPDATE channel_changes SET version = version + 1 RETURNING version),
					changed AS (UPDATE tenant_channels c SET version = next.version FROM next WHERE c.id = ANY ($1::uuid[]) RETURNING c.tenant_id)
				UPDATE tenants t SET channels_version = next.version FROM next WHERE t.id IN (SELECT tenant_id FROM changed)`, channels)
		}
		return c.SendBatch(ctx, b).Close()
	})
}

// ErrOtherSealKey reports that the programs of this database use another key.
var ErrOtherSealKey = errors.New("another program of this database has another " + seal.KeyVariable + ": set the same key everywhere, with the other one as " + seal.PreviousVariable +
	" while keys change; if it is lost, run: sendquota seal rotate")

// ErrOldSealKey reports that programs of this database may run without the key to reseal with.
var ErrOldSealKey = errors.New("no program has started with this " + seal.KeyVariable + " yet, and programs that have only the old key could not open what is sealed with the new one")

// CheckRotation returns [ErrOldSealKey] if the recorded key is the program's previous one: then no program seals with the first one.
func (s *DB) CheckRotation(ctx context.Context) error {
	var known []byte
	err := s.Pool.QueryRow(ctx, `SELECT seal_key FROM installation`).Scan(&known)
	if err == nil && known != nil && s.Cfg.Sealer != nil && s.Cfg.Sealer.Has(known) && !bytes.Equal(known, s.Cfg.Sealer.Prefix()) {
		return ErrOldSealKey
	}
	return Classify(err)
}

// NoteSealKey records the program's key, so that a program with another key is noticed even before anything is sealed. It
// returns [ErrOtherSealKey] if the recorded key is none of the program's, unless force replaces it.
func (s *DB) NoteSealKey(ctx context.Context, force bool) error {
	if s.Cfg.Sealer == nil {
		return nil
	}
	return s.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		var known []byte
		if err := c.QueryRow(ctx, `SELECT seal_key FROM installation`).Scan(&known); err != nil {
			return err
		}
		switch {
		case bytes.Equal(known, s.Cfg.Sealer.Prefix()):
			return nil
		case known != nil && !s.Cfg.Sealer.Has(known) && !force:
			return ErrOtherSealKey
		}
		_, err := c.Exec(ctx, `UPDATE installation SET seal_key = $1`, s.Cfg.Sealer.Prefix())
		return err
	})
}

// CheckSealing returns [seal.ErrNoKey] if the program has no key, and [seal.ErrUnknownKey] if the recorded key is none of its own:
// what it sealed, the others could not open. Until the transaction ends, no other key is recorded. So a rotation comes after it,
// and seals its values again.
func (s *DB) CheckSealing(ctx context.Context, tx pgx.Tx) error {
	if s.Cfg.Sealer == nil {
		return seal.ErrNoKey
	}
	var known []byte
	err := tx.QueryRow(ctx, `SELECT seal_key FROM installation FOR SHARE`).Scan(&known)
	if err == nil && known != nil && !s.Cfg.Sealer.Has(known) {
		return seal.ErrUnknownKey
	}
	return err
}

// KnowsSealKey reports whether the program has the recorded key, or none is recorded. It records nothing.
func (s *DB) KnowsSealKey(ctx context.Context) (knows bool, err error) {
	err = s.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		var known []byte
		err := c.QueryRow(ctx, `SELECT seal_key FROM installation`).Scan(&known)
		knows = known == nil || s.Cfg.Sealer != nil && s.Cfg.Sealer.Has(known)
		return err
	})
	return knows, err
}
