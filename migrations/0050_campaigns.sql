-- +goose Up

-- One message for everybody in an audience.
CREATE TABLE campaigns (
    id            uuid PRIMARY KEY,
    tenant_id     uuid NOT NULL REFERENCES tenants,
    name          text NOT NULL,
    channel       text NOT NULL,
    category      text NOT NULL DEFAULT '',
    send_at       timestamptz,               -- null: local_time, or when it is started
    local_time    timestamp,                 -- what the clocks of each recipient show
    time_zone     text NOT NULL DEFAULT '',  -- of local_time; '': the recipient's, and else the default of the policy
    spread_s      bigint NOT NULL DEFAULT 0, -- seconds over which the recipients are spread
    on_conflict   text NOT NULL DEFAULT 'reject' CHECK (on_conflict IN ('reject', 'defer')),
    latest        timestamptz,
    expires_after_ms bigint NOT NULL DEFAULT 0, -- after each send time; 0: the default
    message       json NOT NULL,             -- with templates in its strings
    metadata      json,
    request_hash  bytea,                     -- of the request that made it, if that had an Idempotency-Key
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at    timestamptz NOT NULL DEFAULT clock_timestamp(),

    status        text NOT NULL DEFAULT 'draft'
        CHECK (status IN ('draft', 'starting', 'running', 'pausing', 'paused', 'canceling', 'canceled', 'finished')),
    audience_id   uuid,                      -- the upload that its recipients came with; null: it has no audience
    audience      bigint NOT NULL DEFAULT 0, -- recipients in it
    started_at    timestamptz,
    ended_at      timestamptz,

    -- What the workers have done. Each transaction that books some of the recipients counts them here.
    worker        uuid,                      -- that carries it on
    lease_until   timestamptz,               -- when another one may
    parked        bool NOT NULL DEFAULT false, -- of what waits, nothing or something is kept from being due
    booked        bigint NOT NULL DEFAULT 0, -- pushes that were made
    deferred      bigint NOT NULL DEFAULT 0, -- of these, at another time than was asked for
    refused       bigint NOT NULL DEFAULT 0,
    opted_out     bigint NOT NULL DEFAULT 0,
    invalid       bigint NOT NULL DEFAULT 0,
    dropped       bigint NOT NULL DEFAULT 0, -- never booked, because it was canceled before
    told          smallint NOT NULL DEFAULT 0, -- the tenths of its progress that webhooks were told of
    CHECK ((status IN ('canceled', 'finished')) = (ended_at IS NOT NULL)),
    CHECK (send_at IS NULL OR local_time IS NULL)
);
CREATE INDEX campaigns_list ON campaigns (tenant_id, created_at, id);
-- What a worker has to carry on.
CREATE INDEX campaigns_open ON campaigns (lease_until) WHERE status IN ('starting', 'running', 'pausing', 'paused', 'canceling');

-- The recipients of campaigns, as they were uploaded. Those of an upload that is no campaign's audience, because another one has
-- replaced it or it never arrived whole, are removed a portion at a time.
CREATE TABLE campaign_recipients (
    shard         smallint NOT NULL CHECK (shard = recipient_key & 255),
    audience_id   uuid NOT NULL,
    recipient_key bigint NOT NULL,
    recipient     text NOT NULL,             -- '': it was erased
    tenant_id     uuid NOT NULL,
    campaign_id   uuid NOT NULL,
    line          int NOT NULL,              -- where the record begins; the header of CSV is line 1
    address       text NOT NULL DEFAULT '',
    variables     json,                      -- an object of the other columns
    outcome       text CHECK (outcome IN ('booked', 'refused', 'opted_out', 'invalid', 'canceled')), -- null: it is to be booked
    push_id       uuid,                      -- of a booked one
    requested_send_at timestamptz,
    reason        text NOT NULL DEFAULT '',  -- by the names of the API's problems, or what is invalid
    rules         text[],                    -- that refuse it
    conflicts     json,                      -- with which bookings
    decided_at    timestamptz,
    PRIMARY KEY (audience_id, shard, recipient_key, recipient)
);
-- In the order of the lines.
CREATE INDEX campaign_recipients_line ON campaign_recipients (audience_id, line);
-- Of a person: for erasures.
CREATE INDEX campaign_recipients_key ON campaign_recipients (recipient_key);
-- What was refused, for the list of refusals.
CREATE INDEX campaign_recipients_refused ON campaign_recipients (tenant_id, decided_at) WHERE outcome IN ('refused', 'opted_out');

-- Uploads that arrive now, or have arrived: what is not in here, nor the audience of a campaign, is removed.
CREATE TABLE campaign_uploads (
    id          uuid PRIMARY KEY,
    tenant_id   uuid NOT NULL REFERENCES tenants,
    campaign_id uuid NOT NULL,
    began_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    alive_until timestamptz NOT NULL,        -- a process renews it while the upload arrives
    ended       bool NOT NULL DEFAULT false  -- it is no audience any more, and is to be removed
);
CREATE INDEX campaign_uploads_campaign ON campaign_uploads (campaign_id);

-- +goose Down
DROP TABLE campaign_uploads, campaign_recipients, campaigns;
