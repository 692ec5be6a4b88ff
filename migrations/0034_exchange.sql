-- +goose Up
-- contract: see 0030.

-- From here on programs use the tables with partitions, and the plain ones follow.
SELECT exchange_beside();

-- +goose Down
SELECT exchange_beside();
