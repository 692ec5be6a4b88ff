-- +goose NO TRANSACTION
-- +goose Up

-- What waits, or is under way, of a campaign. A push of none is not in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS live_campaign ON live (campaign_id, next_at) WHERE campaign_id IS NOT NULL;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS live_campaign;
