-- +goose NO TRANSACTION
-- contract: see 0030.
-- +goose Up

CALL copy_beside('sends', 'push_id', 'started_at');
ANALYZE sends_beside;

-- +goose StatementBegin
-- Of a table that was analyzed while it was empty, the planner believes that it is. So these are made now; one by one, because
-- a program that needs another one waits meanwhile.
DO $$ BEGIN
    FOR n IN 0..60 LOOP
        PERFORM make_partitions('pushes_beside', at, at) FROM (SELECT now() + n * interval '1 week' AS at) week;
        COMMIT;
    END LOOP;
    FOR n IN 0..35 LOOP
        PERFORM make_partitions('sends_beside', at, at) FROM (SELECT now() + n * interval '1 day' AS at) day;
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
SELECT;
