-- +goose Up
-- contract: see 0040.

ALTER TABLE live VALIDATE CONSTRAINT live_shard;

-- +goose Down
SELECT;
