-- +goose Up

-- Programs of the release before must be stopped. Where one is not, its statements fail from here on, because they name
-- columns that are gone, or renamed, or insert pushes without a status. So none of them works beside the new table.
ALTER TABLE pushes RENAME COLUMN gen TO plan;

-- What waits or is under way: one row for each push that has not ended. Workers look for what is due here, claim here, and
-- remove the row when the push ends. It is narrow, and no message is written anew for that. Whoever changes a push locks
-- its row here first, and its row in pushes then.
CREATE TABLE live (
    recipient_key bigint NOT NULL,
    send_at       timestamptz NOT NULL,
    next_at       timestamptz NOT NULL,  -- when to try next, or, while it is under way, to take the attempt for lost
    expires_at    timestamptz NOT NULL,
    started_at    timestamptz,           -- of the attempt under way
    plan          bigint NOT NULL,       -- that of pushes
    attempts      int NOT NULL DEFAULT 0, -- with the one under way
    phase         smallint NOT NULL,     -- 0: it waits; 1: it waits, and is bulk; 2: it is under way
    bulk          bool NOT NULL,         -- its tenant has many pushes for the same second: those of others come first
    more_due      bool NOT NULL DEFAULT false, -- another push of the recipient waits for this attempt to end
    push_id       uuid NOT NULL,
    tenant_id     uuid NOT NULL,
    token         uuid,                  -- names the attempt under way
    channel       text NOT NULL,
    PRIMARY KEY (recipient_key, send_at, push_id),
    CHECK ((phase = 2) = (token IS NOT NULL AND started_at IS NOT NULL))
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.5,
    autovacuum_analyze_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

INSERT INTO live (recipient_key, send_at, next_at, expires_at, started_at, plan, attempts, phase, bulk, more_due, push_id, tenant_id, token, channel)
SELECT p.recipient_key, p.send_at, coalesce(p.lease_until, p.next_at), p.expires_at, CASE WHEN p.status = 'sending' THEN coalesce(s.started_at, p.updated_at) END,
    p.plan, p.attempts, CASE WHEN p.status = 'sending' THEN 2 ELSE 0 END, false, p.more_due, p.id, p.tenant_id, p.claim_token, p.channel
FROM pushes p LEFT JOIN sends s ON p.status = 'sending' AND s.push_id = p.id AND s.ended_at IS NULL
WHERE p.status IN ('scheduled', 'sending');

-- What is due, or will be, in a lane of shards, and whose lease ends when. The recipient key is written in another way than
-- in the primary key: so no statement can take this index for the way to one recipient, whatever the statistics say.
CREATE INDEX live_lane ON live (channel, phase, next_at, (recipient_key & 255), (recipient_key >> 8));
-- A tenant's pushes that have not ended, to be counted.
CREATE INDEX live_tenant ON live (tenant_id);

-- +goose StatementBegin
-- Attempts that are under way are in live alone. The attempts of a push are those that have ended.
DO $$ BEGIN
    UPDATE pushes SET status = 'scheduled', attempts = attempts - 1, claim_token = NULL, lease_until = NULL
    WHERE id IN (SELECT push_id FROM live WHERE phase = 2);
    DELETE FROM sends WHERE ended_at IS NULL AND push_id IN (SELECT push_id FROM live WHERE phase = 2);
END $$;
-- +goose StatementEnd

ALTER TABLE pushes
    ADD COLUMN freed bool NOT NULL DEFAULT false, -- it gave its place in the quota back
    DROP COLUMN claim_token, -- with the constraints that name it
    DROP COLUMN lease_until,
    DROP COLUMN more_due,
    DROP COLUMN armed_until,
    ALTER COLUMN status DROP DEFAULT,
    SET (fillfactor = 75);

-- +goose Down
ALTER TABLE pushes
    DROP COLUMN freed,
    ADD COLUMN claim_token uuid,
    ADD COLUMN more_due bool NOT NULL DEFAULT false,
    ADD COLUMN lease_until timestamptz,
    ADD COLUMN armed_until timestamptz,
    ADD CHECK ((status = 'sending') = (claim_token IS NOT NULL)),
    ADD CHECK ((status = 'sending') = (lease_until IS NOT NULL)),
    ALTER COLUMN status SET DEFAULT 'scheduled',
    SET (fillfactor = 85);
ALTER TABLE pushes RENAME COLUMN plan TO gen;
DROP TABLE live;
