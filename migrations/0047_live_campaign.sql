-- +goose Up

-- The campaign of the push, as in pushes. While a campaign is paused, what waits of it is never due: next_at is infinity.
ALTER TABLE live ADD COLUMN campaign_id uuid;

-- +goose Down
ALTER TABLE live DROP COLUMN campaign_id;
