-- +goose Up

-- The shard of the recipient. Null: the release before wrote the row. Where it is needed, it is null in none.
ALTER TABLE sends ADD COLUMN shard smallint;

-- +goose Down
ALTER TABLE sends DROP COLUMN shard;
