package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/migrations"
)

// Ready checks that the services can use Postgres: it answers, accepts writes, has all migrations of this program, and
// grants the rights on its tables. Otherwise it returns an [*UnreadyError].
func (s *DB) Ready(ctx context.Context) error {
	err := OnConn(ctx, s.Pool, func(c *pgxpool.Conn) error {
		if err := c.Conn().Ping(ctx); err != nil {
			return err
		}
		return ready(ctx, c.Conn())
	})
	if err == nil && !s.reading.reached() { // no ping otherwise: tenants may be using all connections for reads
		err = OnConn(ctx, s.ReadPool, func(c *pgxpool.Conn) error { return c.Conn().Ping(ctx) })
	}
	if _, known := errors.AsType[*UnreadyError](err); err == nil || known {
		return err
	}
	return &UnreadyError{"unreachable", reason(err), Classify(err)}
}

// written lists the tables that services write to.
var written = []string{"pushes", "live", "sends", "api_keys", "webhooks", "webhook_deliveries", "crowds", "lanes", "audit_pass", "audited", "idempotency", "recipients", "policies", "policy_operations", "policy_shadows", "stat_deltas", "stats", "ahead", "recounts", "campaigns", "campaign_recipients", "campaign_uploads",
	"channel_views", "channel_outcomes", "unhealthy_channels", "audits", "audit_findings", "audit_log", "bulk_changes", "bulk_change_pushes", "schedules", "schedule_runs", "users", "sessions", "pauses", "tenant_channels", "channel_changes", "suppressions"}

func ready(ctx context.Context, c *pgx.Conn) error {
	var old bool
	if err := c.QueryRow(ctx, oldSchemaQuery).Scan(&old); err != nil {
		return err
	} else if old {
		return &UnreadyError{"not_migrated", errOldSchema.Error(), nil}
	}
	if lacks, err := lacking(ctx, c); err != nil {
		return err
	} else if lacks > 0 {
		return &UnreadyError{"not_migrated", fmt.Sprintf("it lacks migration %d, which this program needs; run: sendquota migrate", lacks), nil}
	}
	var may, reads bool
	err := c.QueryRow(ctx, `
		SELECT current_setting('transaction_read_only')::bool, coalesce(bool_and(
			has_table_privilege(t, 'SELECT') AND has_table_privilege(t, 'INSERT') AND has_table_privilege(t, 'UPDATE')), false)
			AND has_table_privilege('live', 'DELETE') AND has_table_privilege('pushes', 'DELETE')
			AND has_table_privilege('stat_deltas', 'DELETE') AND has_table_privilege('stats', 'DELETE') AND has_table_privilege('ahead', 'DELETE')
			AND has_table_privilege('api_keys', 'DELETE') AND has_table_privilege('channel_views', 'DELETE')
			AND has_table_privilege('channel_outcomes', 'DELETE') AND has_table_privilege('unhealthy_channels', 'DELETE')
			AND has_table_privilege('bulk_changes', 'DELETE') AND has_table_privilege('bulk_change_pushes', 'DELETE')
			AND has_table_privilege('tenant_channels', 'DELETE') AND has_table_privilege('suppressions', 'DELETE')
			AND has_table_privilege('users', 'DELETE') AND has_table_privilege('sessions', 'DELETE')
			AND has_table_privilege('pauses', 'DELETE') AND has_table_privilege('audits', 'DELETE') AND has_table_privilege('audit_findings', 'DELETE')
		FROM unnest($1::text[]) AS t`, written).Scan(&reads, &may)
	switch {
	case err != nil:
		return err
	case reads:
		return &UnreadyError{"read_only", "the server is a standby, or is set to read-only", nil}
	case !may:
		return &UnreadyError{"not_writable", "the role in DATABASE_URL may not write to all tables", nil}
	}
	return nil
}

// lacking returns the number of the first migration that this program needs and the database lacks; 0: none.
func lacking(ctx context.Context, c *pgx.Conn) (lacks int64, err error) {
	needed := migrations.Needed()
	err = c.QueryRow(ctx, `
		SELECT coalesce(min(n), 0) FROM unnest($1::bigint[]) AS n
		WHERE NOT EXISTS (SELECT FROM `+versionTable+` WHERE version_id = n AND is_applied)`, needed).Scan(&lacks)
	switch {
	case HasCode(err, undefinedTable):
		return needed[0], nil
	case HasCode(err, InsufficientPrivilege): // the role has few privileges; the check of the tables follows
		return 0, nil
	}
	return lacks, Classify(err)
}

// version returns the number of the newest migration that the database has.
func version(ctx context.Context, c *pgx.Conn) (int64, error) {
	var newest pgtype.Int8
	err := c.QueryRow(ctx, `SELECT max(version_id) FROM `+versionTable+` WHERE is_applied`).Scan(&newest)
	switch {
	case HasCode(err, undefinedTable):
		return 0, nil
	case HasCode(err, InsufficientPrivilege): // the role has few privileges; the check of the tables follows
		return migrations.Newest(), nil
	}
	return newest.Int64, Classify(err)
}

// Newer returns a warning if the database has migrations that this program does not know, and an empty string
// otherwise. The program still works with such a database: see docs/operations.md.
func (s *DB) Newer(ctx context.Context) (warning string, err error) {
	err = OnConn(ctx, s.Pool, func(c *pgxpool.Conn) error {
		applied, err := version(ctx, c.Conn())
		if known := migrations.Newest(); applied > known {
			warning = fmt.Sprintf("the database is newer than this program: it has migration %d, and the program knows only up to %d", applied, known)
		}
		return err
	})
	return warning, err
}
