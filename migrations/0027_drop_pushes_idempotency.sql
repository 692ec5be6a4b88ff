-- +goose NO TRANSACTION
-- contract: the release before reads this index.
-- +goose Up

-- What a key has made is found in idempotency.
DROP INDEX CONCURRENTLY IF EXISTS pushes_idempotency;

-- +goose Down
CREATE INDEX CONCURRENTLY IF NOT EXISTS pushes_idempotency ON pushes (idempotency_id) WHERE idempotency_id IS NOT NULL;
