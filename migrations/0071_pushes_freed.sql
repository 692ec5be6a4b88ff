-- +goose NO TRANSACTION
-- contract: the table has its partitions since 0034, and each gets its part of the index by itself.
-- +goose Up

-- A tenant's pushes that gave their places back, in the order of lists: what has failed, expired or was canceled is found without all that
-- was sent. The condition asks for freed alone, which is in pushes_bookings, too: so that a push is sent still changes no column of an
-- index, and costs what it did. It is written so that only queries that say the same can use the index. The parts are built one
-- by one, each in a transaction: what writes to a week's partition waits only while the part of that week is built.
-- +goose StatementBegin
DO $$
DECLARE
    part text;
BEGIN
    CREATE INDEX IF NOT EXISTS pushes_freed ON ONLY pushes (tenant_id, send_at, id) WHERE freed::int = 1;
    COMMIT;
    FOR part IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'pushes'::regclass ORDER BY c.relname DESC LOOP
        IF to_regclass(quote_ident(part || '_freed')) IS NULL AND NOT EXISTS (SELECT FROM pg_index x JOIN pg_inherits i ON i.inhrelid = x.indexrelid
            WHERE x.indrelid = to_regclass(quote_ident(part)) AND i.inhparent = 'pushes_freed'::regclass) THEN
            EXECUTE format('CREATE INDEX %I ON %I (tenant_id, send_at, id) WHERE freed::int = 1', part || '_freed', part);
            EXECUTE format('ALTER INDEX pushes_freed ATTACH PARTITION %I', part || '_freed');
        END IF;
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP INDEX IF EXISTS pushes_freed;
