-- +goose NO TRANSACTION
-- +goose Up

-- pushes_bookings took its place.
DROP INDEX CONCURRENTLY IF EXISTS pushes_recipient;

-- +goose Down
CREATE INDEX CONCURRENTLY IF NOT EXISTS pushes_recipient ON pushes (recipient_key, status, send_at);
