-- +goose Up

-- The campaign of the push, and the send time that was promised; null: the release before wrote the row, or it is of no campaign.
-- While a migration copies the table, the copy has them, too.
ALTER TABLE sends ADD COLUMN campaign_id uuid, ADD COLUMN send_at timestamptz;

-- +goose StatementBegin
DO $$ BEGIN
    IF to_regclass('sends_beside') IS NOT NULL THEN
        ALTER TABLE sends_beside ADD COLUMN campaign_id uuid, ADD COLUMN send_at timestamptz;
    END IF;
END $$;
-- +goose StatementEnd

-- +goose Down
ALTER TABLE sends DROP COLUMN campaign_id, DROP COLUMN send_at;
-- +goose StatementBegin
DO $$ BEGIN
    IF to_regclass('sends_beside') IS NOT NULL THEN
        ALTER TABLE sends_beside DROP COLUMN campaign_id, DROP COLUMN send_at;
    END IF;
END $$;
-- +goose StatementEnd
