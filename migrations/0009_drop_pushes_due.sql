-- +goose NO TRANSACTION
-- +goose Up

-- Its place was taken by pushes_lane. Workers of the previous release go on without it while both run: they read whole
-- tables to find what is due, and the new workers find it before.
DROP INDEX CONCURRENTLY IF EXISTS pushes_due;

-- +goose Down
CREATE INDEX CONCURRENTLY IF NOT EXISTS pushes_due ON pushes (next_at) WHERE status || '' = 'scheduled';
