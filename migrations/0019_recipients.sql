-- +goose Up

-- What tenants say of recipients. Nothing has to be known of one. The primary key has the shard in front, as every key of
-- a recipient has. The table of this name that there was has never had a row.
DROP TABLE recipients;
CREATE TABLE recipients (
    shard              smallint NOT NULL CHECK (shard = recipient_key & 255),
    tenant_id          uuid NOT NULL REFERENCES tenants,
    recipient_key      bigint NOT NULL,
    recipient          text NOT NULL,
    time_zone          text NOT NULL DEFAULT '',   -- an IANA name; '': that of the policy
    addresses          jsonb NOT NULL DEFAULT '{}', -- by channel
    opt_out_all        bool NOT NULL DEFAULT false,
    opt_out_channels   text[] NOT NULL DEFAULT '{}',
    opt_out_categories text[] NOT NULL DEFAULT '{}',
    limits             jsonb NOT NULL DEFAULT '{}', -- by the names of rules
    attributes         jsonb NOT NULL DEFAULT '{}',
    created_at         timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at         timestamptz NOT NULL DEFAULT statement_timestamp(),
    PRIMARY KEY (shard, recipient_key, tenant_id, recipient)
);
-- The list of a tenant's recipients, and of those who have opted out in any part.
CREATE INDEX recipients_list ON recipients (tenant_id, recipient);
CREATE INDEX recipients_opted_out ON recipients (tenant_id, recipient)
    WHERE opt_out_all OR opt_out_channels <> '{}' OR opt_out_categories <> '{}';

-- Every policy that a tenant has had. They are kept: each send is audited by the one in force then. No document: from then on
-- that of the operator's file.
CREATE TABLE policies (
    tenant_id uuid NOT NULL REFERENCES tenants,
    version   bigint NOT NULL CHECK (version > 0),
    at        timestamptz NOT NULL DEFAULT clock_timestamp(), -- from when it is in force
    by        text NOT NULL DEFAULT '',                       -- the id of the API key, or the operator's tool
    document  json,
    PRIMARY KEY (tenant_id, version)
);

-- Every transaction that decides looks here, so that it notices a new policy. Nothing is read of recipients before the first
-- is described.
ALTER TABLE tenants
    ADD COLUMN policy_version bigint NOT NULL DEFAULT 0, -- 0: it never had one of its own
    ADD COLUMN described bool NOT NULL DEFAULT false;    -- it has, or had, recipients that it describes

-- The shard of the recipient. Null: the release before wrote the row. Where it is needed, it is null in none. And the category,
-- which rules with a scope ask of an attempt. Attempts from before have none.
ALTER TABLE sends ADD COLUMN shard smallint, ADD COLUMN category text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE sends DROP COLUMN category, DROP COLUMN shard;
ALTER TABLE tenants DROP COLUMN policy_version, DROP COLUMN described;
DROP TABLE policies;
DROP TABLE recipients;
CREATE TABLE recipients (
    tenant_id  uuid NOT NULL REFERENCES tenants,
    recipient  text NOT NULL,
    time_zone  text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, recipient)
);
