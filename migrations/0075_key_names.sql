-- +goose Up

-- What the tenant calls an API key; the tool gives none.
ALTER TABLE api_keys ADD COLUMN name text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE api_keys DROP COLUMN name;
