-- +goose Up

-- The campaign that the push is of; null: of none. While a migration copies the table, the copy has it, too.
ALTER TABLE pushes ADD COLUMN campaign_id uuid;

-- +goose StatementBegin
DO $$ BEGIN
    IF to_regclass('pushes_beside') IS NOT NULL THEN
        ALTER TABLE pushes_beside ADD COLUMN campaign_id uuid;
    END IF;
END $$;
-- +goose StatementEnd

-- +goose Down
ALTER TABLE pushes DROP COLUMN campaign_id;
-- +goose StatementBegin
DO $$ BEGIN
    IF to_regclass('pushes_beside') IS NOT NULL THEN
        ALTER TABLE pushes_beside DROP COLUMN campaign_id;
    END IF;
END $$;
-- +goose StatementEnd
