-- +goose Up

-- The shard of the recipient. Null: the release before wrote the row. Where it is needed, it is null in none.
LOCK TABLE pushes, sends; -- in the order in which most statements lock them
ALTER TABLE pushes ADD COLUMN shard smallint;
ALTER TABLE sends ADD COLUMN shard smallint;

-- +goose Down
LOCK TABLE pushes, sends;
ALTER TABLE sends DROP COLUMN shard;
ALTER TABLE pushes DROP COLUMN shard;
