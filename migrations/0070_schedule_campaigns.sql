-- +goose Up

-- The campaign that is the pattern of a schedule, in the place of push; null: there is none.
ALTER TABLE schedules ADD COLUMN campaign_id uuid;
CREATE INDEX schedules_campaign ON schedules (campaign_id) WHERE campaign_id IS NOT NULL;
-- The campaign that an occurrence has made.
ALTER TABLE schedule_runs ADD COLUMN campaign_id uuid;
-- An upload that is the copy of an audience, which it keeps from being removed: where it goes on, and how many recipients it has.
ALTER TABLE campaign_uploads ADD COLUMN copy_of uuid, ADD COLUMN copied_shard smallint NOT NULL DEFAULT -1, ADD COLUMN copied_key bigint NOT NULL DEFAULT 0,
    ADD COLUMN copied_recipient text NOT NULL DEFAULT '', ADD COLUMN copied bigint NOT NULL DEFAULT 0;
CREATE INDEX campaign_uploads_copy ON campaign_uploads (copy_of) WHERE copy_of IS NOT NULL;

-- +goose Down
DROP INDEX campaign_uploads_copy;
ALTER TABLE campaign_uploads DROP COLUMN copy_of, DROP COLUMN copied_shard, DROP COLUMN copied_key, DROP COLUMN copied_recipient, DROP COLUMN copied;
ALTER TABLE schedule_runs DROP COLUMN campaign_id;
DROP INDEX schedules_campaign;
ALTER TABLE schedules DROP COLUMN campaign_id;
