-- +goose Up

-- What carries a change of a policy on to what is booked. A tenant has one at a time that runs.
CREATE TABLE policy_operations (
    id          uuid PRIMARY KEY,
    tenant_id   uuid NOT NULL REFERENCES tenants,
    version     bigint NOT NULL, -- of the policy
    apply       text NOT NULL CHECK (apply IN ('reslot', 'cancel')),
    status      text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'finished', 'replaced')),
    settled     bool NOT NULL DEFAULT false, -- whoever decided by an older version has committed
    after_at    timestamptz NOT NULL DEFAULT '-infinity', -- the position, by send time and id, up to which it has looked at pushes
    after_id    uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    looked      bigint NOT NULL DEFAULT 0,
    moved       bigint NOT NULL DEFAULT 0,
    canceled    bigint NOT NULL DEFAULT 0,
    worker      uuid,        -- that carries it on
    lease_until timestamptz, -- when another one may
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at    timestamptz,
    CHECK ((status = 'running') = (ended_at IS NULL))
);
CREATE UNIQUE INDEX policy_operations_running ON policy_operations (tenant_id) WHERE status = 'running';

-- How many pushes the shadow rules of a tenant would have refused, by the minute in which they were submitted.
CREATE TABLE policy_shadows (
    tenant_id    uuid NOT NULL REFERENCES tenants,
    minute       timestamptz NOT NULL,
    rule         text NOT NULL,
    category     text NOT NULL,
    would_refuse bigint NOT NULL,
    PRIMARY KEY (tenant_id, minute, rule, category)
);
-- What is too old to be kept.
CREATE INDEX policy_shadows_minute ON policy_shadows (minute);

-- +goose Down
DROP TABLE policy_operations, policy_shadows;
