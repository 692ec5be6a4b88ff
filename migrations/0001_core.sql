-- +goose Up

CREATE TABLE tenants (
    id         uuid PRIMARY KEY,
    name       text NOT NULL UNIQUE CHECK (name <> ''),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE api_keys (
    id         uuid PRIMARY KEY,
    tenant_id  uuid NOT NULL REFERENCES tenants,
    hash       bytea NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of the key, which is kept nowhere
    scopes     text[] NOT NULL,
    expires_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What a tenant tells us about a recipient. A recipient without a row is as good as one with.
CREATE TABLE recipients (
    tenant_id  uuid NOT NULL REFERENCES tenants,
    recipient  text NOT NULL,
    time_zone  text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, recipient)
);

CREATE TABLE pushes (
    id                 uuid PRIMARY KEY,
    tenant_id          uuid NOT NULL,
    recipient_key      bigint NOT NULL,      -- 64 bits of SHA-256 over tenant and recipient: names the lock, leads the index
    recipient          text NOT NULL,
    channel            text NOT NULL,
    category           text NOT NULL DEFAULT '',
    address            text NOT NULL DEFAULT '',
    message            json NOT NULL,
    metadata           json,
    requested_send_at  timestamptz NOT NULL,
    send_at            timestamptz NOT NULL, -- the promise
    next_at            timestamptz NOT NULL, -- when to try next
    expires_at         timestamptz NOT NULL,
    ttl_ms             bigint NOT NULL DEFAULT 0, -- expires_at moves with send_at; 0: the caller fixed it
    status             text NOT NULL DEFAULT 'scheduled'
                       CHECK (status IN ('scheduled', 'sending', 'sent', 'failed', 'canceled', 'expired')),
    gen                bigint NOT NULL DEFAULT 1,
    attempts           int NOT NULL DEFAULT 0,
    possibly_delivered bool NOT NULL DEFAULT false,
    last_error         text NOT NULL DEFAULT '',
    claim_token        uuid,                 -- names the attempt that is under way
    more_due           bool NOT NULL DEFAULT false, -- another push of the recipient waits for this attempt to end
    lease_until        timestamptz,          -- after this, the attempt counts as lost
    armed_until        timestamptz,          -- until then a wake-up is believed to be in the queue
    idempotency_id     uuid,                 -- stands for the Idempotency-Key, where the request bore one
    idempotency_hash   bytea,                -- SHA-256 of that request
    created_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK (send_at = date_trunc('second', send_at)),
    CHECK ((status = 'sending') = (claim_token IS NOT NULL)),
    CHECK ((status = 'sending') = (lease_until IS NOT NULL))
) WITH (fillfactor = 85);

-- A recipient's bookings around a time, and its due pushes oldest first.
CREATE INDEX pushes_recipient ON pushes (recipient_key, status, send_at);
-- What a request with an Idempotency-Key made before; a batch can have made many.
CREATE INDEX pushes_idempotency ON pushes (idempotency_id) WHERE idempotency_id IS NOT NULL;
-- A tenant's list.
CREATE INDEX pushes_tenant ON pushes (tenant_id, send_at, id);
-- What is to be armed, polled or expired. The condition is written so that only
-- queries that say the same can use the index: with statistics from a quiet
-- hour, the planner would take it for the shortest way to any scheduled push,
-- and read the whole backlog for each of them.
CREATE INDEX pushes_due ON pushes (next_at) WHERE status || '' = 'scheduled';

CREATE TABLE sends (
    push_id             uuid NOT NULL,
    attempt             int NOT NULL CHECK (attempt > 0),
    tenant_id           uuid NOT NULL,
    recipient_key       bigint NOT NULL,
    recipient           text NOT NULL,
    channel             text NOT NULL,
    started_at          timestamptz NOT NULL,
    lease_until         timestamptz NOT NULL,
    handed_at           timestamptz, -- when the provider had the request, where it answered that it took it
    ended_at            timestamptz,
    outcome             text CHECK (outcome IN ('delivered', 'refused', 'unknown')),
    provider_message_id text NOT NULL DEFAULT '',
    error               text NOT NULL DEFAULT '',
    PRIMARY KEY (push_id, attempt),
    CHECK ((ended_at IS NULL) = (outcome IS NULL)),
    CHECK (ended_at >= started_at)
);

-- A recipient's actual sends, for the gate at delivery.
CREATE INDEX sends_recipient ON sends (recipient_key, started_at);
-- One attempt in flight per push; also the list in which expired leases are found.
CREATE UNIQUE INDEX sends_open ON sends (push_id) WHERE ended_at IS NULL;

-- +goose Down
DROP TABLE sends, pushes, recipients, api_keys, tenants;
