-- +goose NO TRANSACTION
-- +goose Up

-- The attempts of some time, for the audit. Attempts are written nearly in the order of time: a range of pages needs one
-- entry, and an attempt next to none.
CREATE INDEX CONCURRENTLY IF NOT EXISTS sends_started ON sends USING brin (started_at) WITH (autosummarize = on);

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS sends_started;
