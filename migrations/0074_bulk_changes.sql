-- +goose Up

-- Changes of all scheduled pushes that fit a filter, which the workers carry out.
CREATE TABLE bulk_changes (
    id           uuid PRIMARY KEY,
    tenant_id    uuid NOT NULL REFERENCES tenants,
    action       text NOT NULL CHECK (action IN ('cancel', 'move')),
    recipient    text NOT NULL DEFAULT '',  -- '': of the filter, it has none
    recipient_key bigint,                   -- of recipient
    erased       bool NOT NULL DEFAULT false, -- the recipient of the filter was erased
    channel      text NOT NULL DEFAULT '',
    category     text NOT NULL DEFAULT '',
    campaign_id  uuid,
    from_at      timestamptz,               -- from_at <= send time < until_at
    until_at     timestamptz,
    shift_s      bigint NOT NULL DEFAULT 0, -- of a move: by so many seconds
    send_at      timestamptz,               -- of a move: to this time
    actor        text NOT NULL CHECK (actor IN ('user', 'key', 'system')), -- who asked for it
    actor_id     uuid,                      -- of the user or the API key
    request_hash bytea,                     -- of the request that made it, if that had an Idempotency-Key
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at     timestamptz,
    status       text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'canceling', 'canceled', 'done')),

    -- What the workers have done.
    worker       uuid,                      -- that carries it on
    lease_until  timestamptz,               -- when another one may
    after_at     timestamptz NOT NULL DEFAULT '-infinity', -- the position, by send time and id, up to which pushes were listed
    after_id     uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    listed       bool NOT NULL DEFAULT false, -- all are
    found        bigint NOT NULL DEFAULT 0,
    changed      bigint NOT NULL DEFAULT 0,
    refused      json NOT NULL DEFAULT '{}', -- how many, by the reason
    CHECK ((status IN ('canceled', 'done')) = (ended_at IS NOT NULL)),
    CHECK ((action = 'move') = (shift_s <> 0 OR send_at IS NOT NULL))
);
CREATE INDEX bulk_changes_list ON bulk_changes (tenant_id, created_at, id);
-- What a worker has to carry on.
CREATE INDEX bulk_changes_open ON bulk_changes (lease_until) WHERE ended_at IS NULL;
-- What is too old to be kept.
CREATE INDEX bulk_changes_ended ON bulk_changes (ended_at) WHERE ended_at IS NOT NULL;
-- Of a person: for erasures.
CREATE INDEX bulk_changes_recipient ON bulk_changes (recipient_key) WHERE recipient_key IS NOT NULL;

-- The pushes of a bulk change, with the send times that they had when it listed them.
CREATE TABLE bulk_change_pushes (
    change_id     uuid NOT NULL,
    push_id       uuid NOT NULL,
    recipient_key bigint NOT NULL,
    send_at       timestamptz NOT NULL,
    outcome       text NOT NULL DEFAULT '', -- '': it was not decided yet; changed; or why it was refused
    rules         text[],                   -- that have refused it
    PRIMARY KEY (change_id, push_id)
);
-- What is to be decided next, by send time, forwards or backwards.
CREATE INDEX bulk_change_pushes_undecided ON bulk_change_pushes (change_id, send_at, push_id) WHERE outcome = '';
CREATE INDEX bulk_change_pushes_refused ON bulk_change_pushes (change_id, send_at, push_id) WHERE outcome NOT IN ('', 'changed');
-- Of a person: for erasures.
CREATE INDEX bulk_change_pushes_key ON bulk_change_pushes (recipient_key);

-- +goose Down
DROP TABLE bulk_change_pushes, bulk_changes;
