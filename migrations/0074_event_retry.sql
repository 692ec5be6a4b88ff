-- +goose Up

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
