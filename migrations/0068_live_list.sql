-- +goose NO TRANSACTION
-- +goose Up

-- A tenant's pushes that have not ended: to be counted, and listed by send time.
CREATE INDEX CONCURRENTLY IF NOT EXISTS live_list ON live (tenant_id, send_at, push_id);

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS live_list;
