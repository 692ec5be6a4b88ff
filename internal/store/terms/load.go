package terms

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// loadTerms reads the tenants' terms in force into Known.
func (s *Store) loadTerms(ctx context.Context, tenants []uuid.UUID) error {
	read := map[uuid.UUID]tenantTerms{}
	rows, _ := s.db.Pool.Query(ctx, `
		SELECT t.id, t.policy_version, t.described, t.deleting_at IS NOT NULL, t.pauses_version, t.suppresses, p.document, t.channels_version, CASE WHEN t.channels_version > 0 THEN (
			SELECT json_object_agg(c.name, json_build_object('Version', c.version, 'Disabled', c.disabled, 'Deleting', c.deleting_at IS NOT NULL))
			FROM tenant_channels c WHERE c.tenant_id = t.id) END
		FROM tenants t LEFT JOIN policies p ON p.tenant_id = t.id AND p.version = t.policy_version
		WHERE t.id = ANY ($1::uuid[])
		UNION ALL SELECT `+pg.NoID+`, 0, false, false, pauses_version, false, NULL, 0, NULL FROM installation WHERE `+pg.NoID+` = ANY ($1::uuid[])`, tenants)
	var (
		tenant   uuid.UUID
		found    tenantTerms
		document []byte
		channels []byte
	)
	_, err := pgx.ForEachRow(rows, []any{&tenant, &found.Version, &found.Described, &found.Deleting, &found.Paused, &found.Suppresses, &document, &found.ChannelsVersion, &channels}, func() error {
		t := found
		if channels != nil {
			if err := json.Unmarshal(channels, &t.Channels); err != nil {
				return err
			}
		}
		if document != nil {
			terms, err := s.Compile(document)
			if err != nil {
				return fmt.Errorf("policy %d of tenant %s: %w", t.Version, tenant, err)
			}
			t.Terms = terms
		}
		read[tenant] = t
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.loadPauses(ctx, read); err != nil {
		return err
	}
	for tenant, t := range read {
		s.Known.put(tenant, t)
	}
	return nil
}

// loadPauses adds their pauses to the terms of tenants that have, or had, some. It must run after the versions were read:
// pauses that are newer than their version are read again.
func (s *Store) loadPauses(ctx context.Context, of map[uuid.UUID]tenantTerms) error {
	var tenants []uuid.UUID
	for tenant, t := range of {
		if t.Paused > 0 {
			tenants = append(tenants, tenant)
		}
	}
	if len(tenants) == 0 {
		return nil
	}
	rows, _ := s.db.Pool.Query(ctx, `
		SELECT id, coalesce(tenant_id, `+pg.NoID+`), scope, name, reason, coalesce(until, `+pg.NoTime+`), created_at FROM pauses
		WHERE coalesce(tenant_id, `+pg.NoID+`) = ANY ($1::uuid[]) AND ended_at IS NULL`, tenants)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[pause.Pause])
	for _, p := range all {
		t := of[p.Tenant]
		t.Pauses = append(t.Pauses, p)
		of[p.Tenant] = t
	}
	return err
}

// Compile compiles a stored policy. It was valid when it was stored, so a channel that has left the configuration since
// then is accepted: nothing is sent through it.
func (s *Store) Compile(document []byte) (*policy.Terms, error) {
	var d policy.Document
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, err
	}
	return d.Compile(d.ChannelNames())
}

// LongestReach returns the longest reach of any tenant's own policy: sends older than that count against none of them.
func (s *Store) LongestReach(ctx context.Context) (reach time.Duration, err error) {
	rows, _ := s.db.Pool.Query(ctx, `SELECT p.document FROM tenants t JOIN policies p ON p.tenant_id = t.id AND p.version = t.policy_version WHERE p.document IS NOT NULL`)
	var document []byte
	_, err = pgx.ForEachRow(rows, []any{&document}, func() error {
		terms, err := s.Compile(document)
		if err == nil {
			reach = max(reach, terms.Reach())
		}
		return err
	})
	return reach, err
}
