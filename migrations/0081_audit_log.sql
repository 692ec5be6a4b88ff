-- +goose Up

-- Who did what: a row for each change, written by the transaction that makes it. Partitions are by week.
CREATE TABLE audit_log (
    id         uuid NOT NULL DEFAULT gen_random_uuid(),
    tenant_id  uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor      text NOT NULL CHECK (actor IN ('user', 'key', 'system')),
    actor_id   uuid,          -- of the user or the API key; null: of the system
    action     text NOT NULL, -- such as key.create: a type of target, and what was done
    target     text NOT NULL, -- the id; '': of a recipient who was erased, or of none
    difference jsonb NOT NULL -- what has changed, by the names of members; no texts of messages, addresses or secrets
) PARTITION BY RANGE (created_at);

CREATE INDEX audit_log_list ON audit_log (tenant_id, created_at, id);
CREATE INDEX audit_log_target ON audit_log (tenant_id, target, created_at, id);

INSERT INTO partitioning VALUES ('audit_log', '7 days', 'fillfactor = 100');
SELECT share_privileges('pushes', 'audit_log');
SELECT make_partitions('audit_log', now(), now() + interval '35 days');

-- +goose Down
DROP TABLE audit_log;
DELETE FROM partitioning WHERE parent = 'audit_log';
