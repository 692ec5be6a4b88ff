-- +goose Up

-- Where a tenant wants to be told what becomes of its pushes.
CREATE TABLE webhooks (
    id               uuid PRIMARY KEY,
    tenant_id        uuid NOT NULL REFERENCES tenants,
    url              text NOT NULL,
    events           text[] NOT NULL,
    secret           text NOT NULL,          -- signs, and so is kept as it is
    old_secret       text NOT NULL DEFAULT '',
    old_secret_until timestamptz,            -- until then, both sign
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    failures         int NOT NULL DEFAULT 0, -- since the last success
    failing_since    timestamptz,
    disabled_at      timestamptz,
    disabled_reason  text NOT NULL DEFAULT '',
    deleted_at       timestamptz             -- the row goes when its deliveries are gone
);

CREATE INDEX webhooks_tenant ON webhooks (tenant_id, created_at) WHERE deleted_at IS NULL;
-- Whom a change of a push concerns: asked at every one.
CREATE INDEX webhooks_on ON webhooks (tenant_id) WHERE disabled_at IS NULL AND deleted_at IS NULL;
CREATE INDEX webhooks_deleted ON webhooks (deleted_at) WHERE deleted_at IS NOT NULL;

-- The outbox: one row per event and webhook, written in the transaction that
-- made the event happen.
CREATE TABLE webhook_deliveries (
    id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    seq         bigint NOT NULL GENERATED ALWAYS AS IDENTITY, -- the events of a push come in this order: its row was locked
    webhook_id  uuid NOT NULL,               -- no foreign key: a change of a push waits for nobody
    tenant_id   uuid NOT NULL,
    push_id     uuid,                        -- null: about no push, and in no order
    event       text NOT NULL,
    payload     json NOT NULL,               -- what is sent, to the letter
    status      text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'sending', 'delivered', 'failed')),
    attempts    int NOT NULL DEFAULT 0,
    next_at     timestamptz NOT NULL DEFAULT clock_timestamp(), -- when to try, or, while it is sending, to take it for lost
    last_status int NOT NULL DEFAULT 0,      -- of the last answer; 0: there was none
    last_error  text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    queued_at   timestamptz NOT NULL DEFAULT clock_timestamp(), -- created or replayed
    ended_at    timestamptz,
    CHECK ((status IN ('delivered', 'failed')) = (ended_at IS NOT NULL))
);

-- What is due, by webhook. Queries must repeat the condition.
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (webhook_id, next_at) WHERE status IN ('waiting', 'sending');
-- What is under way: few, and not to be looked for among all that waits, which
-- is why the condition is written so that no other index fits.
CREATE INDEX webhook_deliveries_sending ON webhook_deliveries (webhook_id) WHERE status || '' = 'sending';
-- The events of a push, in order.
CREATE INDEX webhook_deliveries_push ON webhook_deliveries (webhook_id, push_id, seq);
CREATE INDEX webhook_deliveries_list ON webhook_deliveries (webhook_id, seq);
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (webhook_id, seq) WHERE status = 'failed';
CREATE INDEX webhook_deliveries_old ON webhook_deliveries (queued_at);

-- +goose StatementBegin
-- A time as the API writes it.
CREATE FUNCTION utc(t timestamptz) RETURNS text LANGUAGE sql STABLE
AS $$ SELECT (to_json(t AT TIME ZONE 'UTC') #>> '{}') || 'Z' $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- A push as the API shows it, without what it says and to which address.
CREATE FUNCTION push_event(event text, p pushes) RETURNS json LANGUAGE sql STABLE
AS $$ SELECT json_build_object('type', event, 'timestamp', utc(p.updated_at), 'data', json_build_object(
    'id', p.id, 'status', p.status, 'recipient', p.recipient, 'channel', p.channel, 'category', p.category,
    'send_at', utc(p.send_at), 'requested_send_at', utc(p.requested_send_at), 'deferred', p.send_at > p.requested_send_at,
    'next_attempt_at', CASE WHEN p.status = 'scheduled' AND p.next_at <> p.send_at THEN utc(p.next_at) END,
    'expires_at', utc(p.expires_at), 'attempts', p.attempts, 'last_error', p.last_error,
    'possibly_delivered', p.possibly_delivered, 'metadata', p.metadata,
    'created_at', utc(p.created_at), 'updated_at', utc(p.updated_at))) $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Writes events of pushes for the webhooks that want them. It is in PL/pgSQL,
-- which keeps the plan.
CREATE FUNCTION tell(ids uuid[], events text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO webhook_deliveries (webhook_id, tenant_id, push_id, event, payload)
    SELECT w.id, p.tenant_id, p.id, n.event, push_event(n.event, p)
    FROM unnest(ids, events) AS n (id, event)
    JOIN pushes p ON p.id = n.id
    JOIN webhooks w ON w.tenant_id = p.tenant_id AND w.disabled_at IS NULL AND w.deleted_at IS NULL AND n.event = ANY (w.events);
END $$;
-- +goose StatementEnd

-- The two triggers are called once for each statement, whoever changes a push
-- and why. They leave at once where there is no webhook at all, and soon where
-- no tenant concerned has one.

-- +goose StatementBegin
CREATE FUNCTION tell_booked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM webhooks WHERE disabled_at IS NULL AND deleted_at IS NULL) THEN
        RETURN NULL;
    END IF;
    IF EXISTS (SELECT FROM (SELECT DISTINCT tenant_id FROM after) t
        JOIN webhooks w ON w.tenant_id = t.tenant_id AND w.disabled_at IS NULL AND w.deleted_at IS NULL) THEN
        PERFORM tell(array_agg(id), array_agg('push.scheduled'::text)) FROM after;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Before and after are brought together by sorting: the service's connections
-- have no hash and merge joins.
CREATE FUNCTION tell_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM webhooks WHERE disabled_at IS NULL AND deleted_at IS NULL) THEN
        RETURN NULL;
    END IF;
    IF EXISTS (SELECT FROM (SELECT DISTINCT tenant_id FROM after) t
        JOIN webhooks w ON w.tenant_id = t.tenant_id AND w.disabled_at IS NULL AND w.deleted_at IS NULL) THEN
        PERFORM tell(array_agg(id), array_agg(event)) FROM (
            SELECT id, CASE
                WHEN step = 0 OR status = 'sending' THEN NULL
                WHEN status <> 'scheduled' AND status <> lag(status) OVER push THEN 'push.' || status
                WHEN status <> 'scheduled' THEN NULL
                WHEN (send_at, requested_send_at) <> (lag(send_at) OVER push, lag(requested_send_at) OVER push) THEN 'push.scheduled'
                WHEN next_at <> lag(next_at) OVER push THEN 'push.deferred'
            END AS event
            FROM (
                SELECT 0 AS step, id, status, send_at, requested_send_at, next_at FROM before UNION ALL
                SELECT 1, id, status, send_at, requested_send_at, next_at FROM after
            ) steps
            WINDOW push AS (PARTITION BY id ORDER BY step)
        ) events WHERE event IS NOT NULL;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER tell_booked AFTER INSERT ON pushes
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION tell_booked();
CREATE TRIGGER tell_changed AFTER UPDATE ON pushes
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION tell_changed();

-- +goose Down
DROP TRIGGER tell_booked ON pushes;
DROP TRIGGER tell_changed ON pushes;
DROP FUNCTION tell_booked(), tell_changed(), tell(uuid[], text[]), push_event(text, pushes), utc(timestamptz);
DROP TABLE webhook_deliveries, webhooks;
