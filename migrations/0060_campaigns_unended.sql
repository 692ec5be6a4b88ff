-- +goose Up

-- The campaigns of a tenant that have not ended: it may have so many.
CREATE INDEX campaigns_unended ON campaigns (tenant_id) WHERE ended_at IS NULL;

-- +goose Down
DROP INDEX campaigns_unended;
