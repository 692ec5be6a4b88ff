-- +goose Up

-- The campaign that is the pattern of a schedule, in the place of push; null: there is none.
ALTER TABLE schedules ADD COLUMN campaign_id uuid;
-- The campaign that an occurrence has made.
ALTER TABLE schedule_runs ADD COLUMN campaign_id uuid;
-- An upload that is the copy of an audience, which it keeps from being removed: how far that is, in lines and in recipients.
ALTER TABLE campaign_uploads ADD COLUMN copy_of uuid, ADD COLUMN copied_line int NOT NULL DEFAULT 0, ADD COLUMN copied bigint NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE campaign_uploads DROP COLUMN copy_of, DROP COLUMN copied_line, DROP COLUMN copied;
ALTER TABLE schedule_runs DROP COLUMN campaign_id;
ALTER TABLE schedules DROP COLUMN campaign_id;
