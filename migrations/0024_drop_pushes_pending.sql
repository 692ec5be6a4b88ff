-- +goose NO TRANSACTION
-- contract: the release before reads this index.
-- +goose Up

-- Pending pushes are counted in live.
DROP INDEX CONCURRENTLY IF EXISTS pushes_pending;

-- +goose Down
CREATE INDEX CONCURRENTLY IF NOT EXISTS pushes_pending ON pushes ((tenant_id::text)) WHERE '' || status IN ('scheduled', 'sending');
