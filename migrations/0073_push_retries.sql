-- +goose Up

-- A retry has the push that it retries, the first of all these, and whether one of them may have been delivered. The first has the
-- latest of its retries. While a migration copies the table, the copy has them, too.
ALTER TABLE pushes ADD COLUMN retry_of uuid, ADD COLUMN retry_first uuid, ADD COLUMN retry_latest uuid, ADD COLUMN retry_doubt bool;

-- +goose StatementBegin
DO $$ BEGIN
    IF to_regclass('pushes_beside') IS NOT NULL THEN
        ALTER TABLE pushes_beside ADD COLUMN retry_of uuid, ADD COLUMN retry_first uuid, ADD COLUMN retry_latest uuid, ADD COLUMN retry_doubt bool;
    END IF;
END $$;
-- +goose StatementEnd

-- +goose Down
ALTER TABLE pushes DROP COLUMN retry_of, DROP COLUMN retry_first, DROP COLUMN retry_latest, DROP COLUMN retry_doubt;
-- +goose StatementBegin
DO $$ BEGIN
    IF to_regclass('pushes_beside') IS NOT NULL THEN
        ALTER TABLE pushes_beside DROP COLUMN retry_of, DROP COLUMN retry_first, DROP COLUMN retry_latest, DROP COLUMN retry_doubt;
    END IF;
END $$;
-- +goose StatementEnd
