-- +goose NO TRANSACTION
-- contract: the release before reads this index.
-- +goose Up

-- pushes_bookings took its place.
DROP INDEX CONCURRENTLY IF EXISTS pushes_recipient;

-- +goose Down
CREATE INDEX CONCURRENTLY IF NOT EXISTS pushes_recipient ON pushes (recipient_key, status, send_at);
