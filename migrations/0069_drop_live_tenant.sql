-- +goose NO TRANSACTION
-- +goose Up

-- live_list begins with the same column.
DROP INDEX CONCURRENTLY IF EXISTS live_tenant;

-- +goose Down
CREATE INDEX CONCURRENTLY IF NOT EXISTS live_tenant ON live (tenant_id);
