-- +goose NO TRANSACTION
-- +goose Up

-- What is due, or will be, in a lane of shards. The condition is written in another way than that of pushes_due, and of
-- pushes_pending: a statement that repeats it can use this index only, whatever the statistics say. The previous release
-- uses pushes_due; a later migration drops that.
CREATE INDEX CONCURRENTLY IF NOT EXISTS pushes_lane ON pushes (channel, bulk, next_at, (recipient_key & 255), recipient_key) WHERE status || '.' = 'scheduled.';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS pushes_lane;
