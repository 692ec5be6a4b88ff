-- +goose NO TRANSACTION
-- contract: the release before would read along it.
-- +goose Up

-- A recipient's bookings around a time, apart from the pushes that gave their places back: those can be very many. That a
-- push is sent changes no column of an index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS pushes_bookings ON pushes (recipient_key, freed, send_at);

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS pushes_bookings;
