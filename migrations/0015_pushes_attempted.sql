-- +goose Up

-- When the first attempt began. Null: none has ended yet, or the release before wrote the row. Attempts are found by it
-- and by when the push was changed last.
ALTER TABLE pushes ADD COLUMN attempted_at timestamptz;

-- +goose Down
ALTER TABLE pushes DROP COLUMN attempted_at;
