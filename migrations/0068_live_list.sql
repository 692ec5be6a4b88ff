-- +goose NO TRANSACTION
-- +goose Up

-- A tenant's pushes that have not ended: to be counted, and listed by send time. That and the id are written in another way than in
-- the primary key: so no statement can take this index for the way to one push, whatever the statistics say.
CREATE INDEX CONCURRENTLY IF NOT EXISTS live_list ON live (tenant_id, (send_at AT TIME ZONE 'UTC'), (uuid_send(push_id)));

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS live_list;
