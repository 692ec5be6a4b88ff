-- +goose NO TRANSACTION
-- contract: the table has its partitions since 0034, and each gets its part of the index by itself.
-- +goose Up

-- A tenant's attempts that have ended, in the order in which they began. The condition is written so that only queries that say the same
-- can use the index: the reads of one recipient have one of their own. Until it is there, only the lists of one recipient are answered. The parts
-- are built one by one, each in a transaction: what writes to a day's partition waits only while the part of that day is built.
-- +goose StatementBegin
DO $$
DECLARE
    part text;
BEGIN
    CREATE INDEX IF NOT EXISTS sends_tenant ON ONLY sends (tenant_id, started_at, push_id) WHERE outcome || '' <> '';
    COMMIT;
    FOR part IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'sends'::regclass ORDER BY c.relname DESC LOOP
        IF to_regclass(quote_ident(part || '_tenant')) IS NULL AND NOT EXISTS (SELECT FROM pg_index x JOIN pg_inherits i ON i.inhrelid = x.indexrelid
            WHERE x.indrelid = to_regclass(quote_ident(part)) AND i.inhparent = 'sends_tenant'::regclass) THEN
            EXECUTE format('CREATE INDEX %I ON %I (tenant_id, started_at, push_id) WHERE outcome || '''' <> ''''', part || '_tenant', part);
            EXECUTE format('ALTER INDEX sends_tenant ATTACH PARTITION %I', part || '_tenant');
        END IF;
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP INDEX IF EXISTS sends_tenant;
