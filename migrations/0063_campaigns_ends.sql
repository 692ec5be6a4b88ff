-- +goose Up

-- What became of the pushes of a campaign that has ended: it keeps these counts when the pushes are removed. null: it goes on.
ALTER TABLE campaigns ADD COLUMN sent bigint, ADD COLUMN failed bigint, ADD COLUMN expired bigint, ADD COLUMN withdrawn bigint;

-- +goose Down
ALTER TABLE campaigns DROP COLUMN sent, DROP COLUMN failed, DROP COLUMN expired, DROP COLUMN withdrawn;
