-- +goose Up

-- +goose StatementBegin
-- Events of pushes have the campaign. While a migration copies the table, there are two functions.
DO $$
DECLARE
    of text;
BEGIN
    FOREACH of IN ARRAY '{pushes, pushes_beside}'::text[] LOOP
        IF to_regclass(of) IS NOT NULL THEN
            EXECUTE replace(pg_get_functiondef(format('push_event(text, %I)', of)::regprocedure), '''metadata'', p.metadata,', '''metadata'', p.metadata, ''campaign'', p.campaign_id,');
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
            EXECUTE replace(pg_get_functiondef(format('push_event(text, %I)', of)::regprocedure), ' ''campaign'', p.campaign_id,', '');
        END IF;
    END LOOP;
END $$;
-- +goose StatementEnd
