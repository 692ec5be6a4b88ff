-- +goose Up

-- What has become of pushes, as the transactions that do it write it down: rows are added only, and a worker adds them to the
-- numbers below every few seconds and removes them.
CREATE TABLE stat_deltas (
    tenant_id   uuid NOT NULL,
    shard       smallint NOT NULL,           -- of one of the recipients
    what        text NOT NULL CHECK (what IN ('accepted', 'moved', 'sent', 'failed', 'expired', 'canceled', 'refused', 'rule')),
    hour        timestamptz NOT NULL,        -- that it counts in: of the submit, or of the end
    send_hour   timestamptz,                 -- of the promised send time; null: of a refusal
    channel     text NOT NULL,
    category    text NOT NULL,
    campaign_id uuid,
    rule        text NOT NULL DEFAULT '',    -- that has refused
    n           int NOT NULL,                -- pushes; of moved, those that came to that hour, or less than 0 that left it
    deferred    int NOT NULL DEFAULT 0,      -- of the accepted ones
    late        smallint[]                   -- of the sent ones: how late each was, as a bucket of the histograms
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1);

-- The numbers of a tenant: one row for each question that can be asked of an hour, a day, or all time.
CREATE TABLE stats (
    tenant_id uuid NOT NULL,
    step      text NOT NULL CHECK (step IN ('hour', 'day', 'ever')), -- of UTC; ever: of campaigns only
    of        text NOT NULL CHECK (of IN ('total', 'channel', 'category', 'campaign', 'rule')),
    at        timestamptz NOT NULL,        -- when the hour or the day began
    key       text NOT NULL,               -- the channel, the category and so on; '': of total, or of pushes without one
    accepted  bigint NOT NULL DEFAULT 0,
    deferred  bigint NOT NULL DEFAULT 0,   -- of the accepted ones
    refused   bigint NOT NULL DEFAULT 0,
    sent      bigint NOT NULL DEFAULT 0,
    failed    bigint NOT NULL DEFAULT 0,
    expired   bigint NOT NULL DEFAULT 0,
    canceled  bigint NOT NULL DEFAULT 0,
    late      bytea,                       -- a histogram of how late the sent ones were
    PRIMARY KEY (tenant_id, step, of, at, key)
) WITH (fillfactor = 80);
CREATE INDEX stats_old ON stats (at) WHERE step = 'hour';

-- How many pushes wait for a send time in an hour.
CREATE TABLE ahead (
    tenant_id   uuid NOT NULL,
    hour        timestamptz NOT NULL,
    channel     text NOT NULL,
    category    text NOT NULL,
    campaign_id uuid NOT NULL,             -- all zeros: of none
    n           bigint NOT NULL,
    PRIMARY KEY (tenant_id, hour, channel, category, campaign_id)
) WITH (fillfactor = 80);

-- +goose Down
DROP TABLE stat_deltas, stats, ahead;
