-- +goose NO TRANSACTION
-- contract: the release before reads this index.
-- +goose Up

-- Attempts under way are in live.
DROP INDEX CONCURRENTLY IF EXISTS sends_open;

-- +goose Down
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS sends_open ON sends (push_id) WHERE ended_at IS NULL;
