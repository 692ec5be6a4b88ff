// Package policies keeps the policies of tenants, and applies their changes to existing bookings.
package policies

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/store/attempts"
	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
)

// Store keeps policies.
type Store struct {
	db     *pg.DB
	pushes *pushes.Store
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB, pushes *pushes.Store) *Store {
	return &Store{db: db, pushes: pushes}
}

// versionColumns are the columns of [policy.Version], of policies p.
const versionColumns = `p.version, p.at, p.by, p.document`

// inForceSQL reads the version of a tenant's policy that is in force.
const inForceSQL = `SELECT ` + versionColumns + ` FROM tenants t JOIN policies p ON p.tenant_id = t.id AND p.version = t.policy_version WHERE t.id = $1`

// Policy returns the version of a tenant's policy that is in force, or the zero one if the tenant never had a policy.
func (s *Store) Policy(ctx context.Context, tenant uuid.UUID) (v policy.Version, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, inForceSQL, tenant)
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[policy.Version])
		if v = (policy.Version{}); len(all) > 0 {
			v = all[0]
		}
		return err
	})
	return v, err
}

// PolicyVersions returns up to limit versions of a tenant's policy before a version, the newest first; 0 starts from
// the newest.
func (s *Store) PolicyVersions(ctx context.Context, tenant uuid.UUID, before int64, limit int) (all []policy.Version, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `SELECT `+versionColumns+` FROM policies p WHERE tenant_id = $1 AND ($2 = 0::bigint OR version < $2) ORDER BY version DESC LIMIT $3`,
			tenant, before, limit)
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[policy.Version])
		return err
	})
	return all, err
}

// ChangePolicy stores a new version of a tenant's policy. It returns the version, and the operation that applies it
// to existing bookings, or nil. Once it has returned, all processes decide by the new version: every transaction that
// decides reads the version in force under the recipient's lock. It returns a [*policy.StaleError] if the change is
// based on an older version.
//
// Resetting the policy to the operator's file changes nothing if the file is already in force.
func (s *Store) ChangePolicy(ctx context.Context, tenant uuid.UUID, change policy.Change) (v policy.Version, op *policy.Operation, err error) {
	var document []byte
	if change.Document != nil {
		if document, err = json.Marshal(change.Document); err != nil {
			return v, nil, err
		}
	}
	id := uuid.New()
	err = s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		v, op = policy.Version{}, nil
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if v, err = lockPolicy(ctx, tx, tenant); err != nil {
				return err
			}
			if earlier > 0 {
				if done, err := committedBefore(ctx, tx, tenant, id, v, change, document, &op); done || err != nil {
					return err
				}
			}
			if !change.Holds(v.Number) {
				return &policy.StaleError{InForce: v.Number}
			}
			putOff, err := attempts.CountPutOff(ctx, tx, tenant)
			if err != nil {
				return err
			}
			if document == nil && v.Document == nil {
				return nil
			}
			old := v
			if v, err = insertPolicy(ctx, tx, tenant, v.Number+1, change.By, document); err != nil {
				return err
			}
			if err := recordPolicy(ctx, tx, tenant, old, v, change.Apply); err != nil {
				return err
			}
			if op, err = replaceOperation(ctx, tx, tenant, id, v.Number, change.Apply); err == nil {
				op.PutOff = putOff
			}
			return err
		})
	})
	return v, op, err
}

// recordPolicy adds a change of a tenant's policy to the audit log.
func recordPolicy(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, old, v policy.Version, apply policy.Apply) error {
	action, d, was, is := auditlog.PolicyChange, auditlogs.Difference{}, policy.Document{}, policy.Document{}
	if old.Document != nil {
		was = *old.Document
	}
	if v.Document != nil {
		is = *v.Document
	} else {
		action = auditlog.PolicyReset
	}
	d.Show("version", old.Number, v.Number)
	d.Show("rules", was.Rules, is.Rules)
	d.Show("categories", was.Categories, is.Categories)
	d.Show("quiet_hours", was.QuietHours, is.QuietHours)
	d.Show("default_zone", was.DefaultZone, is.DefaultZone)
	d.Show("apply", nil, apply)
	return auditlogs.Record(ctx, tx, tenant, action, strconv.FormatInt(v.Number, 10), d)
}

// lockPolicy returns the version in force. It stays in force until the transaction ends.
func lockPolicy(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (policy.Version, error) {
	var known bool
	if err := tx.QueryRow(ctx, `SELECT true FROM tenants WHERE id = $1 FOR NO KEY UPDATE`, tenant).Scan(&known); err != nil {
		return policy.Version{}, err
	}
	rows, _ := tx.Query(ctx, inForceSQL, tenant)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[policy.Version])
	if len(all) == 0 {
		return policy.Version{}, err
	}
	return all[0], err
}

// committedBefore reports whether an earlier run, whose reply was lost, was committed and stored the version in
// force. It then reads that run's operation into op.
func committedBefore(
	ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, v policy.Version, change policy.Change, document []byte, op **policy.Operation,
) (done bool, err error) {
	if v.By != change.By || (v.Document == nil) != (document == nil) {
		return false, nil
	}
	if document != nil {
		stored, err := json.Marshal(v.Document)
		if err != nil || !bytes.Equal(stored, document) {
			return false, err
		}
	}
	*op, err = readOperation(ctx, tx, tenant, id)
	return *op != nil, err
}

// insertPolicy stores a version and puts it in force.
func insertPolicy(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, number int64, by string, document []byte) (policy.Version, error) {
	rows, _ := tx.Query(ctx, `
		WITH changed AS (UPDATE tenants SET policy_version = $2 WHERE id = $1)
		INSERT INTO policies AS p (tenant_id, version, by, document) VALUES ($1, $2, $3, $4::text::json) RETURNING `+versionColumns,
		tenant, number, by, pushes.OrNull(document))
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[policy.Version])
}

// operationColumns are the columns of [policy.Operation], of policy_operations p.
const operationColumns = `p.id, p.version, p.apply, p.status, p.looked, p.moved, p.canceled, p.rechecked, p.created_at, p.updated_at, coalesce(p.ended_at, ` + pg.NoTime + `)`

// replaceOperation ends the running operation of an older version, and creates one for this version.
func replaceOperation(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, version int64, apply policy.Apply) (*policy.Operation, error) {
	_, err := tx.Exec(ctx, `
		UPDATE policy_operations SET status = 'replaced', ended_at = clock_timestamp(), updated_at = clock_timestamp()
		WHERE tenant_id = $1 AND status = 'running'`, tenant)
	if err != nil {
		return nil, err
	}
	rows, _ := tx.Query(ctx, `INSERT INTO policy_operations AS p (id, tenant_id, version, apply) VALUES ($1, $2, $3, $4) RETURNING `+operationColumns,
		id, tenant, version, string(cmp.Or(apply, policy.NewOnly)))
	o, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[policy.Operation])
	return &o, err
}

// readOperation returns an operation of a tenant, or nil.
func readOperation(ctx context.Context, c pg.Querier, tenant, id uuid.UUID) (*policy.Operation, error) {
	rows, _ := c.Query(ctx, `SELECT `+operationColumns+` FROM policy_operations p WHERE id = $1 AND tenant_id = $2`, id, tenant)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[policy.Operation])
	if len(all) == 0 {
		return nil, err
	}
	return &all[0], err
}

// PolicyOperation returns an operation of a tenant, or [push.ErrNotFound].
func (s *Store) PolicyOperation(ctx context.Context, tenant, id uuid.UUID) (o policy.Operation, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		found, err := readOperation(ctx, c, tenant, id)
		if err == nil && found == nil {
			err = pgx.ErrNoRows
		}
		if err != nil {
			return fmt.Errorf("read operation: %w", err)
		}
		o = *found
		return nil
	})
	return o, err
}
