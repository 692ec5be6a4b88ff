-- +goose NO TRANSACTION
-- contract: the release before reads this index.
-- +goose Up

-- What is due is found in live.
DROP INDEX CONCURRENTLY IF EXISTS pushes_due;

-- +goose Down
CREATE INDEX CONCURRENTLY IF NOT EXISTS pushes_due ON pushes (next_at) WHERE status || '' = 'scheduled';
