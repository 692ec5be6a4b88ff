-- +goose Up
-- contract: programs of the release before name neither partitions nor the weeks of pushes.

-- Tables with partitions beside the plain ones. Triggers write into each what is done to the other one, in the same
-- transaction (0031), the rows that are there already are copied (0032, 0033), the names are exchanged (0034), and at last
-- the plain tables go (0037). Until then each step can be undone, and nothing of what was done since is lost.

-- The order matters: of indexes that cost the same, as all of an empty partition do, the planner takes the newest. A push is found
-- by its id along the primary key, and not along pushes_tenant; a recipient's rows, along the last index of each table.
CREATE TABLE pushes_beside (LIKE pushes INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE) PARTITION BY RANGE (send_at);
CREATE INDEX pushes_beside_tenant ON pushes_beside (tenant_id, send_at, id);
ALTER TABLE pushes_beside
    ADD CONSTRAINT pushes_beside_pkey PRIMARY KEY (id, send_at), ALTER COLUMN shard SET NOT NULL,
    ADD CONSTRAINT pushes_beside_shard CHECK (shard = recipient_key & 255);
CREATE INDEX pushes_beside_bookings ON pushes_beside (recipient_key, freed, send_at);

CREATE TABLE sends_beside (LIKE sends INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE) PARTITION BY RANGE (started_at);
ALTER TABLE sends_beside
    ADD CONSTRAINT sends_beside_pkey PRIMARY KEY (push_id, attempt, started_at), ALTER COLUMN shard SET NOT NULL,
    ADD CONSTRAINT sends_beside_shard CHECK (shard = recipient_key & 255);
CREATE INDEX sends_beside_recipient ON sends_beside (recipient_key, started_at);

SELECT share_privileges('pushes', 'pushes_beside'), share_privileges('sends', 'sends_beside');

-- Programs make what else they need. Those for the time ahead come with 0033.
INSERT INTO partitioning
SELECT parent || '_beside', step, options FROM partitioning WHERE parent IN ('pushes', 'sends');
SELECT make_partitions('pushes_beside', least(oldest, now()), now()), make_partitions('sends_beside', least(oldest, now()), now())
FROM (
    SELECT min(p.send_at) AS oldest
    FROM tenants t CROSS JOIN LATERAL (SELECT send_at FROM pushes WHERE tenant_id = t.id ORDER BY send_at LIMIT 1) p
) p;

-- +goose StatementBegin
-- The function that shows a push as an event is of the rows of one table.
DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('push_event(text, pushes)'::regprocedure), ' pushes)', ' pushes_beside)');
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- A change of pushes that names the table itself writes events of its rows as they are then: no table with many partitions is
-- asked for them. So it does on the way back.
CREATE OR REPLACE FUNCTION tell_booked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM webhooks WHERE disabled_at IS NULL AND deleted_at IS NULL) THEN
        RETURN NULL;
    END IF;
    INSERT INTO webhook_deliveries (webhook_id, tenant_id, push_id, event, payload)
    SELECT w.id, a.tenant_id, a.id, 'push.scheduled', push_event('push.scheduled', p)
    FROM after a
    JOIN webhooks w ON w.tenant_id = a.tenant_id AND w.disabled_at IS NULL AND w.deleted_at IS NULL AND 'push.scheduled' = ANY (w.events)
    CROSS JOIN LATERAL json_populate_record(NULL::pushes, row_to_json(a)) p;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION tell_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM webhooks WHERE disabled_at IS NULL AND deleted_at IS NULL) THEN
        RETURN NULL;
    END IF;
    IF EXISTS (SELECT FROM (SELECT DISTINCT tenant_id FROM after) t
        JOIN webhooks w ON w.tenant_id = t.tenant_id AND w.disabled_at IS NULL AND w.deleted_at IS NULL) THEN
        INSERT INTO webhook_deliveries (webhook_id, tenant_id, push_id, event, payload)
        SELECT w.id, e.tenant_id, e.id, e.event, push_event(e.event, p)
        FROM (
            SELECT id, tenant_id, whole, CASE
                WHEN step = 0 OR status = 'sending' THEN NULL
                WHEN status <> 'scheduled' AND status <> lag(status) OVER push THEN 'push.' || status
                WHEN status <> 'scheduled' THEN NULL
                WHEN (send_at, requested_send_at) <> (lag(send_at) OVER push, lag(requested_send_at) OVER push) THEN 'push.scheduled'
                WHEN next_at <> lag(next_at) OVER push THEN 'push.deferred'
            END AS event
            FROM (
                SELECT 0 AS step, id, tenant_id, status, send_at, requested_send_at, next_at, NULL::json AS whole FROM before UNION ALL
                SELECT 1, id, tenant_id, status, send_at, requested_send_at, next_at, row_to_json(a) FROM after a
            ) steps
            WINDOW push AS (PARTITION BY id ORDER BY step)
        ) e
        JOIN webhooks w ON w.tenant_id = e.tenant_id AND w.disabled_at IS NULL AND w.deleted_at IS NULL AND e.event = ANY (w.events)
        CROSS JOIN LATERAL json_populate_record(NULL::pushes, e.whole) p;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- +goose StatementBegin
-- Does to the other table what was done to a row. One that is not there yet comes with its first change. A plan that is made
-- for the row locks its partition only.
CREATE FUNCTION follow_pushes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM pushes_beside WHERE id = OLD.id AND send_at = OLD.send_at;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        NEW.shard := NEW.recipient_key & 255;
        INSERT INTO pushes_beside SELECT NEW.*;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION follow_sends() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM sends_beside WHERE push_id = OLD.push_id AND attempt = OLD.attempt AND started_at = OLD.started_at;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        NEW.shard := NEW.recipient_key & 255;
        INSERT INTO sends_beside SELECT NEW.*;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Copies what lacks in the table beside one, in portions of some thousand rows, each in a transaction of its own. A row that
-- others have locked is left to them: if they change it, it follows; if not, it is copied a moment later. So the copying
-- waits for nobody, and others wait for it as long as a portion takes. It can be begun again.
CREATE PROCEDURE copy_beside(source text, key text, at text) LANGUAGE plpgsql AS $$
DECLARE
    beside text := source || '_beside';
    behind uuid := '00000000-0000-0000-0000-000000000000';
    upto   uuid;
    lacks  bool;
    others text; -- all columns but the shard: rows of the release before have none
BEGIN
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO others FROM pg_attribute
    WHERE attrelid = source::regclass AND attnum > 0 AND NOT attisdropped AND attname <> 'shard';
    LOOP
        PERFORM set_config('enable_seqscan', 'off', true); -- whatever the statistics say
        EXECUTE format('SELECT %2$I FROM (SELECT %2$I FROM %1$I WHERE %2$I > $1 ORDER BY %2$I LIMIT 2000) p ORDER BY %2$I DESC LIMIT 1', source, key)
            INTO upto USING behind;
        EXIT WHEN upto IS NULL;
        EXECUTE format('SELECT make_partitions(%3$L, first, greatest(first, last)) FROM (
                SELECT min(%4$I) AS first, least(max(%4$I), now()) AS last FROM %1$I WHERE %2$I > $1 AND %2$I <= $2 GROUP BY greatest(%4$I::date, now()::date)
            ) p', source, key, beside, at) USING behind, upto;
        LOOP
            EXECUTE format('INSERT INTO %3$I (%4$s, shard) SELECT %4$s, recipient_key & 255
                FROM (SELECT * FROM %1$I WHERE %2$I > $1 AND %2$I <= $2 FOR SHARE SKIP LOCKED) p ON CONFLICT DO NOTHING', source, key, beside, others) USING behind, upto;
            COMMIT;
            PERFORM set_config('enable_seqscan', 'off', true);
            EXECUTE format('SELECT EXISTS (SELECT FROM %1$I p WHERE %2$I > $1 AND %2$I <= $2
                AND NOT EXISTS (SELECT FROM %3$I b WHERE b.%2$I = p.%2$I AND b.%4$I = p.%4$I))', source, key, beside, at) INTO lacks USING behind, upto;
            EXIT WHEN NOT lacks;
            PERFORM pg_sleep(0.02);
        END LOOP;
        behind := upto;
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Exchanges the names of the tables and of their indexes. From then on the former one follows.
CREATE FUNCTION exchange_beside() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    name text;
BEGIN
    LOCK TABLE pushes, sends, pushes_beside, sends_beside; -- in the order in which most statements lock them
    DROP TRIGGER tell_booked ON pushes;
    DROP TRIGGER tell_changed ON pushes;
    DROP TRIGGER follow ON pushes;
    DROP TRIGGER follow ON sends;
    FOREACH name IN ARRAY '{pushes, sends}'::text[] LOOP
        EXECUTE format('ALTER TABLE %I RENAME TO %I', name, name || '_aside');
        EXECUTE format('ALTER TABLE %I RENAME TO %I', name || '_beside', name);
        EXECUTE format('ALTER TABLE %I RENAME TO %I', name || '_aside', name || '_beside');
    END LOOP;
    FOREACH name IN ARRAY '{pushes pkey, pushes tenant, pushes bookings, sends pkey, sends recipient}'::text[] LOOP
        EXECUTE format('ALTER INDEX %I RENAME TO %I', replace(name, ' ', '_'), replace(name, ' ', '_aside_'));
        EXECUTE format('ALTER INDEX %I RENAME TO %I', replace(name, ' ', '_beside_'), replace(name, ' ', '_'));
        EXECUTE format('ALTER INDEX %I RENAME TO %I', replace(name, ' ', '_aside_'), replace(name, ' ', '_beside_'));
    END LOOP;
    -- Programs that know partitions by their names find none that is not of the table which they use, and look again.
    FOR name IN SELECT relname FROM pg_class
        WHERE relispartition AND relnamespace = quote_ident(current_schema())::regnamespace AND relname ~ '^(pushes|sends)(_beside)?_\d{8}' LOOP
        EXECUTE format('ALTER TABLE %I RENAME TO %I', name, CASE WHEN name ~ '_beside_' THEN replace(name, '_beside_', '_') ELSE regexp_replace(name, '_', '_beside_') END);
    END LOOP;
    CREATE TRIGGER tell_booked AFTER INSERT ON pushes
        REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION tell_booked();
    CREATE TRIGGER tell_changed AFTER UPDATE ON pushes
        REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION tell_changed();
    CREATE TRIGGER follow AFTER INSERT OR UPDATE OR DELETE ON pushes FOR EACH ROW EXECUTE FUNCTION follow_pushes();
    CREATE TRIGGER follow AFTER INSERT OR UPDATE OR DELETE ON sends FOR EACH ROW EXECUTE FUNCTION follow_sends();
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION push_event(text, pushes_beside), follow_pushes(), follow_sends(), exchange_beside();
DROP PROCEDURE copy_beside(text, text, text);
DROP TABLE pushes_beside, sends_beside;
DELETE FROM partitioning WHERE parent IN ('pushes_beside', 'sends_beside');
