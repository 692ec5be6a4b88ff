-- Shows, in an empty database, which index Postgres takes in a backlog when its statistics are from a quiet hour.
CREATE TABLE pushes (
    id uuid PRIMARY KEY, recipient_key bigint NOT NULL, send_at timestamptz NOT NULL, next_at timestamptz NOT NULL, status text NOT NULL
) WITH (fillfactor = 85, autovacuum_enabled = off);
CREATE INDEX pushes_recipient ON pushes (recipient_key, status, send_at);

-- A quiet hour: everything is sent.
INSERT INTO pushes SELECT gen_random_uuid(), n, now() - interval '1 day', now() - interval '1 day', 'sent' FROM generate_series(1, 100000) n;
ANALYZE pushes;
-- Then a backlog.
INSERT INTO pushes SELECT gen_random_uuid(), n, now() - interval '1 minute', now() - interval '1 minute', 'scheduled' FROM generate_series(1, 50000) n;

PREPARE due AS
    SELECT p.* FROM generate_series(1, 64) AS k CROSS JOIN LATERAL (
        SELECT * FROM pushes WHERE recipient_key = k AND status = 'scheduled' AND next_at <= statement_timestamp() ORDER BY next_at LIMIT 2) p;

\echo '== the plain condition'
CREATE INDEX pushes_due ON pushes (next_at) WHERE status = 'scheduled';
EXPLAIN (ANALYZE, BUFFERS) EXECUTE due;

\echo '== a condition that only the intended queries repeat'
DROP INDEX pushes_due;
CREATE INDEX pushes_due ON pushes (next_at) WHERE status || '' = 'scheduled';
EXPLAIN (ANALYZE, BUFFERS) EXECUTE due;

DROP TABLE pushes;
