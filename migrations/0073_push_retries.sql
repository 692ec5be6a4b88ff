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

-- +goose StatementBegin
-- Events of pushes say what a push retries, and tell of possible deliveries of that, too. While a migration copies the table, there are two functions.
DO $$
DECLARE
    of text;
BEGIN
    FOREACH of IN ARRAY '{pushes, pushes_beside}'::text[] LOOP
        IF to_regclass(of) IS NOT NULL THEN
            EXECUTE replace(replace(pg_get_functiondef(format('push_event(text, %I)', of)::regprocedure),
                '''campaign'', p.campaign_id,', '''campaign'', p.campaign_id, ''retry_of'', p.retry_of,'),
                'p.possibly_delivered,', 'p.possibly_delivered OR p.retry_doubt IS TRUE,');
        END IF;
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $$
DECLARE
    of text;
BEGIN
    FOREACH of IN ARRAY '{pushes, pushes_beside}'::text[] LOOP
        IF to_regclass(of) IS NOT NULL THEN
            EXECUTE replace(replace(pg_get_functiondef(format('push_event(text, %I)', of)::regprocedure),
                ' ''retry_of'', p.retry_of,', ''), ' OR p.retry_doubt IS TRUE', '');
        END IF;
    END LOOP;
END $$;
-- +goose StatementEnd
ALTER TABLE pushes DROP COLUMN retry_of, DROP COLUMN retry_first, DROP COLUMN retry_latest, DROP COLUMN retry_doubt;
-- +goose StatementBegin
DO $$ BEGIN
    IF to_regclass('pushes_beside') IS NOT NULL THEN
        ALTER TABLE pushes_beside DROP COLUMN retry_of, DROP COLUMN retry_first, DROP COLUMN retry_latest, DROP COLUMN retry_doubt;
    END IF;
END $$;
-- +goose StatementEnd
