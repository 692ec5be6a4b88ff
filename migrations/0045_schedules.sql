-- +goose Up

-- Pushes that are sent again and again. All occurrences up to done_at are in schedule_runs.
CREATE TABLE schedules (
    id           uuid PRIMARY KEY,
    tenant_id    uuid NOT NULL REFERENCES tenants,
    name         text NOT NULL,
    cron         text NOT NULL,
    time_zone    text NOT NULL,
    push         json NOT NULL,             -- the pattern of each push
    recipient_key bigint,                    -- of the pattern's recipient: an erasure finds it by this
    catch_up     text NOT NULL CHECK (catch_up IN ('skip', 'last')),
    paused       bool NOT NULL,
    until        timestamptz,               -- exclusive; NULL: for ever
    began_at     timestamptz NOT NULL,      -- from when on an @every counts
    done_at      timestamptz NOT NULL,
    next_at      timestamptz,               -- of the first occurrence after done_at; NULL: there is none
    request_hash bytea,                     -- of the request that made it, if that had an Idempotency-Key
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    deleted_at   timestamptz                -- it is removed with its runs, a portion at a time
);
CREATE INDEX schedules_list ON schedules (tenant_id, id) WHERE deleted_at IS NULL;
CREATE INDEX schedules_next ON schedules (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_due ON schedules (tenant_id, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_deleted ON schedules (deleted_at) WHERE deleted_at IS NOT NULL;

-- What became of each occurrence. A row without an outcome is an occurrence that a worker has begun: it is to be submitted.
CREATE TABLE schedule_runs (
    schedule_id uuid NOT NULL REFERENCES schedules,
    at          timestamptz NOT NULL,
    tenant_id   uuid NOT NULL,
    outcome     text CHECK (outcome IN ('submitted', 'refused', 'skipped')),
    push_id     uuid,
    reason      text NOT NULL DEFAULT '',
    rules       text[] NOT NULL DEFAULT '{}', -- that have refused it
    detail      text NOT NULL DEFAULT '',
    begun_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (schedule_id, at)
);
CREATE INDEX schedule_runs_begun ON schedule_runs (tenant_id, at, schedule_id) WHERE outcome IS NULL;
CREATE INDEX schedule_runs_old ON schedule_runs (at);

-- +goose Down
DROP TABLE schedule_runs;
DROP TABLE schedules;
