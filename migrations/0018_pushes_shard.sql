-- +goose Up

-- The shard of the recipient. Null: the release before wrote the row. Where it is needed, it is null in none.
ALTER TABLE pushes ADD COLUMN shard smallint;

-- +goose Down
ALTER TABLE pushes DROP COLUMN shard;
