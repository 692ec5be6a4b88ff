-- +goose Up

-- The one row names this database among those whose programs share a Redis.
CREATE TABLE installation (
    id      uuid NOT NULL DEFAULT gen_random_uuid(),
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row)
);
INSERT INTO installation DEFAULT VALUES;

-- +goose Down
DROP TABLE installation;
