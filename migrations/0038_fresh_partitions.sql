-- +goose Up
-- contract: see 0030.

-- +goose StatementBegin
-- A statistic that says that a partition is empty is worse than none: all of its indexes cost the same then, and a plan that is
-- kept may go along the wrong one. A partition that is emptied has no statistics.
DO $$
DECLARE
    part regclass;
    used bool;
BEGIN
    FOR part IN
        SELECT inhrelid::regclass FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
        WHERE inhparent IN ('pushes'::regclass, 'sends'::regclass, 'idempotency'::regclass) AND c.reltuples = 0 ORDER BY 1
    LOOP
        EXECUTE format('LOCK TABLE %s', part);
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', part) INTO used;
        IF NOT used THEN
            EXECUTE format('TRUNCATE %s', part);
        END IF;
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
SELECT;
