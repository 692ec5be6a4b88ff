-- +goose Up
-- contract: see 0030.

LOCK TABLE pushes, sends; -- in the order in which most statements lock them
DROP TRIGGER follow ON pushes;
DROP TRIGGER follow ON sends;
DROP FUNCTION push_event(text, pushes_beside);
DROP TABLE pushes_beside, sends_beside;
DELETE FROM partitioning WHERE parent IN ('pushes_beside', 'sends_beside');

-- +goose Down
CREATE TABLE pushes_beside (LIKE pushes INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE) WITH (fillfactor = 75);
CREATE INDEX pushes_beside_tenant ON pushes_beside (tenant_id, send_at, id);
CREATE INDEX pushes_beside_bookings ON pushes_beside (recipient_key, freed, send_at);
ALTER TABLE pushes_beside ADD CONSTRAINT pushes_beside_pkey PRIMARY KEY (id), DROP CONSTRAINT pushes_beside_shard, ALTER COLUMN shard DROP NOT NULL;

CREATE TABLE sends_beside (LIKE sends INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE);
CREATE INDEX sends_beside_recipient ON sends_beside (recipient_key, started_at);
ALTER TABLE sends_beside ADD CONSTRAINT sends_beside_pkey PRIMARY KEY (push_id, attempt), DROP CONSTRAINT sends_beside_shard, ALTER COLUMN shard DROP NOT NULL;

SELECT share_privileges('pushes', 'pushes_beside'), share_privileges('sends', 'sends_beside');
INSERT INTO partitioning
SELECT parent || '_beside', step, options FROM partitioning WHERE parent IN ('pushes', 'sends');

-- +goose StatementBegin
DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('push_event(text, pushes)'::regprocedure), ' pushes)', ' pushes_beside)');
END $$;
-- +goose StatementEnd

LOCK TABLE pushes, sends;
CREATE TRIGGER follow AFTER INSERT OR UPDATE OR DELETE ON pushes FOR EACH ROW EXECUTE FUNCTION follow_pushes();
CREATE TRIGGER follow AFTER INSERT OR UPDATE OR DELETE ON sends FOR EACH ROW EXECUTE FUNCTION follow_sends();
