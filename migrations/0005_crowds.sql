-- +goose Up

-- Recipients with so many bookings that API processes keep them in memory: the
-- version changes in every transaction that adds or removes a booking of one, so
-- that a process knows whether what it keeps is still true.
CREATE TABLE crowds (
    recipient_key bigint PRIMARY KEY,
    version       uuid NOT NULL DEFAULT gen_random_uuid()
) WITH (fillfactor = 50);

-- +goose Down
DROP TABLE crowds;
