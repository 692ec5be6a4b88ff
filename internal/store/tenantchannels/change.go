package tenantchannels

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/tenantchannel"
)

// Every change locks the row of its tenant, and then, as its last lock, the one row of channel_changes. So versions grow in
// the order of commits, and a process that has seen a version has seen all earlier changes.

// bumpSQL gives a tenant's channels the next version.
const bumpSQL = `
	WITH next AS (UPDATE channel_changes SET version = version + 1 RETURNING version)
	UPDATE tenants t SET channels_version = next.version FROM next WHERE t.id = $1 RETURNING t.channels_version`

// nextVersion gives a tenant's channels the next version, and returns it.
func nextVersion(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (version int64, err error) {
	failpoint.Hit(failpoint.ChannelLocked)
	err = tx.QueryRow(ctx, bumpSQL, tenant).Scan(&version)
	return version, err
}

// locked runs work in a transaction that has locked the tenant, with the tenant's channel of that name; without an ID, there
// is none.
func (s *Store) locked(ctx context.Context, tenant uuid.UUID, name string, work func(ctx context.Context, tx pgx.Tx, was tenantchannel.Channel) error) error {
	return s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			var known bool
			if err := tx.QueryRow(ctx, `SELECT true FROM tenants WHERE id = $1 AND deleting_at IS NULL FOR NO KEY UPDATE`, tenant).Scan(&known); err != nil {
				return err
			}
			rows, _ := tx.Query(ctx, `SELECT `+columns+` FROM tenant_channels c WHERE c.tenant_id = $1 AND c.name = $2`, tenant, name)
			was, err := pgx.CollectExactlyOneRow(rows, s.scan)
			if err != nil && !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			return work(ctx, tx, was)
		})
	})
}

// PutChannel stores a tenant's channel, and returns whether it is new. change makes it from the stored one, which has no ID if there is none.
// It is called under the tenant's lock, so that changes of a channel follow each other. The errors are those of change,
// [tenantchannel.ErrTooMany], [tenantchannel.ErrDeleting], and those of [pg.DB.CheckSealing].
func (s *Store) PutChannel(ctx context.Context, tenant uuid.UUID, name string, change tenantchannel.Changer) (c tenantchannel.Channel, created bool, err error) {
	id := uuid.New()
	err = s.locked(ctx, tenant, name, func(ctx context.Context, tx pgx.Tx, was tenantchannel.Channel) error {
		created = was.ID == uuid.Nil || was.ID == id // an earlier run may have created it
		if was.ID == id {
			c = was
			return nil
		}
		change, err := change(was)
		switch {
		case err != nil:
			return err
		case was.Deleting:
			return tenantchannel.ErrDeleting
		}
		if err := s.db.CheckSealing(ctx, tx); err != nil {
			return err
		}
		var others int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM tenant_channels WHERE tenant_id = $1 AND name <> $2`, tenant, change.Name).Scan(&others); err != nil {
			return err
		}
		if created && others >= change.Max {
			return tenantchannel.ErrTooMany
		}
		if created {
			was.ID = id
		}
		c, err = s.write(ctx, tx, tenant, was, change)
		return err
	})
	return c, created, err
}

// write stores a channel and the entry of the audit log.
func (s *Store) write(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, was tenantchannel.Channel, change tenantchannel.Change) (c tenantchannel.Channel, err error) {
	var now time.Time
	if err := tx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		return c, err
	}
	plain, err := json.Marshal(change.Secrets)
	if err != nil {
		return c, err
	}
	times, err := json.Marshal(secretTimes(was, change.Secrets, now))
	if err != nil {
		return c, err
	}
	sealed, err := s.db.Cfg.Sealer.Seal(plain, cell(tenant, was.ID))
	if err != nil {
		return c, err
	}
	if len(change.Secrets) == 0 {
		sealed = []byte{}
	}
	if err := recordPut(ctx, tx, tenant, was, change); err != nil {
		return c, err
	}
	version, err := nextVersion(ctx, tx, tenant)
	if err != nil {
		return c, err
	}
	rows, _ := tx.Query(ctx, `
		INSERT INTO tenant_channels AS c (id, tenant_id, name, type, settings, secret, secret_times, disabled, version) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (tenant_id, name) DO UPDATE SET type = excluded.type, settings = excluded.settings, secret = excluded.secret,
			secret_times = excluded.secret_times, disabled = excluded.disabled, version = excluded.version, updated_at = clock_timestamp()
		RETURNING `+columns, was.ID, tenant, change.Name, change.Type, change.Settings, sealed, times, change.Disabled, version)
	return pgx.CollectExactlyOneRow(rows, s.scan)
}

// recordPut adds a change of a channel to the audit log. The settings are shown by the names of their members only: a URL or
// a host may be as good as a secret.
func recordPut(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, was tenantchannel.Channel, change tenantchannel.Change) error {
	action, d := auditlog.ChannelChange, auditlogs.Difference{}
	var typ, disabled any = was.Type, was.Disabled
	if was.Version == 0 {
		action, typ, disabled = auditlog.ChannelCreate, nil, nil
	}
	d.Show("type", typ, change.Type)
	d.Show("disabled", disabled, change.Disabled)
	d.HideMembers("settings", apart(was.Settings), apart(change.Settings))
	is, err := json.Marshal(change.Secrets)
	if err != nil {
		return err
	}
	secrets, err := json.Marshal(was.Secrets)
	if err != nil {
		return err
	}
	if was.Secrets == nil {
		secrets = nil
	}
	d.HideMembers("secrets", secrets, is)
	return auditlogs.Record(ctx, tx, tenant, action, change.Name, d)
}

// apart returns settings without the members that have entries of their own.
func apart(settings json.RawMessage) json.RawMessage {
	members := map[string]json.RawMessage{}
	_ = json.Unmarshal(settings, &members) // valid: it was checked before it was stored
	delete(members, "type")
	delete(members, "disabled")
	rest, _ := json.Marshal(members)
	return rest
}

// BeginTest counts a test of a channel, and adds it to the audit log. It returns the number of tests that are left in this hour, or a [*tenantchannel.TooManyTestsError] if the
// tenant has made the tests of this hour.
func (s *Store) BeginTest(ctx context.Context, tenant uuid.UUID, name string) (t tenantchannel.Test, err error) {
	err = s.locked(ctx, tenant, name, func(ctx context.Context, tx pgx.Tx, _ tenantchannel.Channel) error {
		var (
			tests int
			in    time.Duration
		)
		err := tx.QueryRow(ctx, `
			SELECT count(*), coalesce(min(at) + interval '1 hour' - clock_timestamp(), '0') FROM tenants t, unnest(t.channel_tests) AS at
			WHERE t.id = $1 AND at > clock_timestamp() - interval '1 hour'`, tenant).Scan(&tests, &in)
		if err != nil {
			return err
		}
		if tests >= tenantchannel.TestsPerHour {
			return &tenantchannel.TooManyTestsError{In: in}
		}
		t.Left = tenantchannel.TestsPerHour - tests - 1
		_, err = tx.Exec(ctx, `
			UPDATE tenants t SET channel_tests = ARRAY(SELECT at FROM unnest(t.channel_tests) AS at WHERE at > clock_timestamp() - interval '1 hour') || clock_timestamp()
			WHERE id = $1`, tenant)
		if err != nil {
			return err
		}
		args := auditlogs.RecordArgs(push.ActorOf(ctx), tenant, auditlog.ChannelTest, name, nil)
		return tx.QueryRow(ctx, auditlogs.RecordSQL+` RETURNING id, created_at`, args...).Scan(&t.Entry, &t.At)
	})
	return t, err
}

// EndTest adds the outcome of a test to its entry of the audit log.
func (s *Store) EndTest(ctx context.Context, tenant uuid.UUID, t tenantchannel.Test, outcome push.Outcome) error {
	d := auditlogs.Difference{}
	d.Show("outcome", nil, outcome)
	return s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		_, err := c.Exec(ctx, `UPDATE audit_log SET difference = $4 WHERE id = $1 AND created_at = $2 AND tenant_id = $3`, t.Entry, t.At, tenant, d.Text())
		return err
	})
}
