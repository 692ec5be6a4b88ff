-- +goose Up

-- The whole schema, by subject: tenants and their keys, users and sessions; recipients and policies; pushes, the pushes
-- that wait, and attempts; pauses; webhooks; campaigns; schedules; bulk changes; statistics; workers; audits and the audit log; at the end
-- the functions that make partitions and events.
--
-- All times are UTC. A *shard* is recipient_key & 255: all rows of one recipient have the same shard. Each row has it, so that the
-- recipients can be divided among servers (docs/scale.md).


-- Tenants -------------------------------------------------------------------------------------------------------------------------

CREATE TABLE tenants (
    id             uuid PRIMARY KEY,
    name           text NOT NULL UNIQUE CHECK (name <> ''),
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    pending_cap    int CHECK (pending_cap >= 0),      -- maximum of waiting pushes; 0: no maximum; null: the setting of all tenants
    recipients_cap int CHECK (recipients_cap >= 0),   -- recipients a day; 0 and null as above
    audience_cap   bigint CHECK (audience_cap >= 0),  -- bytes of audiences; 0 and null as above
    policy_version bigint NOT NULL DEFAULT 0,         -- of its policy; 0: it never had its own
    pauses_version bigint NOT NULL DEFAULT 0,         -- grows with every change of its pauses; 0: it never had one
    described      bool NOT NULL DEFAULT false,       -- it has, or had, rows in recipients; otherwise no statement reads that table for it
    suppresses     bool NOT NULL DEFAULT false,       -- the same of suppressions
    channels_version bigint NOT NULL DEFAULT 0,       -- of its channels, as in channel_changes; 0: it never had any
    channel_tests  timestamptz[] NOT NULL DEFAULT '{}', -- when it tested channels in the last hour
    deleting_at    timestamptz                        -- the begin of its deletion: nothing is accepted or sent for it any more
);

-- Tenants whose channels have changed since a version.
CREATE INDEX tenants_channels ON tenants (channels_version) WHERE channels_version > 0;

-- The one row names this database among all databases that share a Redis. The secret keys hashes of sign-in names, and salts of
-- passwords.
CREATE TABLE installation (
    id      uuid NOT NULL DEFAULT gen_random_uuid(),
    secret  bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()),
    pauses_version bigint NOT NULL DEFAULT 0,         -- of the operator's pauses of all tenants; as in tenants
    seal_key bytea,                                   -- identifies the key that seals secrets; null: no program had one yet
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row)
);
INSERT INTO installation DEFAULT VALUES;

-- The version of the last change of any tenant's channels. A change locks the row until it commits, so that versions grow in the order of
-- the commits.
CREATE TABLE channel_changes (
    version bigint NOT NULL DEFAULT 0,
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row)
);
INSERT INTO channel_changes DEFAULT VALUES;

-- The channels that tenants make. Each hides the operator's channel of its name.
CREATE TABLE tenant_channels (
    id           uuid PRIMARY KEY,
    tenant_id    uuid NOT NULL REFERENCES tenants,
    name         text NOT NULL,
    type         text NOT NULL,
    settings     jsonb NOT NULL,                      -- the members that the tenant gave, without secrets
    secret       bytea NOT NULL,                      -- all secrets as one sealed object (internal/seal); empty: none, or lost
    secret_times jsonb NOT NULL,                      -- when each secret was set, by member
    disabled     bool NOT NULL DEFAULT false,
    version      bigint NOT NULL,                     -- of its last change, as in channel_changes
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    deleting_at  timestamptz,                         -- the begin of its deletion: nothing is accepted or sent through it any more
    cancels      bool NOT NULL DEFAULT false,         -- its deletion cancels pushes
    canceled     bigint NOT NULL DEFAULT 0,           -- pushes that its deletion has canceled so far
    UNIQUE (tenant_id, name)
);

CREATE TABLE api_keys (
    id           uuid PRIMARY KEY,
    tenant_id    uuid NOT NULL REFERENCES tenants,
    name         text NOT NULL DEFAULT '',            -- given by the tenant; the command-line tool gives none
    hash         bytea NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of the key, which is stored nowhere
    scopes       text[] NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    lifetime     interval,                            -- of this key, and of its successor; null: no limit
    expires_at   timestamptz,
    revoked_at   timestamptz,                         -- from then on it is refused, whatever expires_at is
    last_used_at timestamptz,                         -- to about a minute
    successor    uuid REFERENCES api_keys             -- the key that its last rotation made
);
CREATE INDEX api_keys_tenant ON api_keys (tenant_id, created_at);

-- The people who sign in to the console.
CREATE TABLE users (
    id              uuid PRIMARY KEY,
    tenant_id       uuid NOT NULL REFERENCES tenants,
    email           text NOT NULL CHECK (email = lower(email)), -- the name to sign in with
    name            text NOT NULL DEFAULT '',
    role            text NOT NULL CHECK (role IN ('viewer', 'editor', 'sender', 'admin')),
    password_hash   text,                             -- argon2id, as a PHC string
    password_set_at timestamptz,
    password_role   text,                             -- link_role of the link that set the password; a stronger role ends the password
    issuer          text,                             -- the OIDC provider that knows the user as subject
    subject         text,
    link_hash       bytea UNIQUE CHECK (length(link_hash) = 32), -- SHA-256 of the token of a link, which is stored nowhere
    link_role       text,                             -- the strongest role that the maker of the link could give; '': none
    link_expires_at timestamptz,
    disabled_at     timestamptz,
    last_sign_in_at timestamptz,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (tenant_id, email),
    UNIQUE (tenant_id, issuer, subject),
    CHECK ((issuer IS NULL) = (subject IS NULL)),
    CHECK ((password_hash IS NULL) = (password_role IS NULL) AND (password_hash IS NULL) = (password_set_at IS NULL)),
    CHECK ((link_hash IS NULL) = (link_expires_at IS NULL) AND (link_hash IS NULL) = (link_role IS NULL))
);
-- A tenant's list.
CREATE INDEX users_tenant ON users (tenant_id, created_at, id);
-- A sign-in that names no tenant.
CREATE INDEX users_email ON users (email);

-- The sessions of users in browsers.
CREATE TABLE sessions (
    token_hash   bytea PRIMARY KEY CHECK (length(token_hash) = 32), -- SHA-256 of the cookie, which is stored nowhere
    id           uuid NOT NULL UNIQUE,
    user_id      uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    data         bytea NOT NULL,
    address      text NOT NULL,
    user_agent   text NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at   timestamptz NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id, last_seen_at);
CREATE INDEX sessions_expired ON sessions (expires_at);


-- Recipients and policies ---------------------------------------------------------------------------------------------------------

-- Tenants' descriptions of recipients. A recipient needs no row to be sent to.
CREATE TABLE recipients (
    shard              smallint NOT NULL CHECK (shard = recipient_key & 255),
    tenant_id          uuid NOT NULL REFERENCES tenants,
    recipient_key      bigint NOT NULL,
    recipient          text NOT NULL,
    time_zone          text NOT NULL DEFAULT '',      -- an IANA name; '': the zone of the policy
    addresses          jsonb NOT NULL DEFAULT '{}',   -- by channel
    address_keys       bigint[] NOT NULL DEFAULT '{}', -- of these addresses, as in suppressions
    opt_out_all        bool NOT NULL DEFAULT false,
    opt_out_channels   text[] NOT NULL DEFAULT '{}',
    opt_out_categories text[] NOT NULL DEFAULT '{}',
    limits             json NOT NULL DEFAULT '{}',    -- by the name of the rule, in the order of the request, which jsonb would lose
    attributes         jsonb NOT NULL DEFAULT '{}',
    created_at         timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at         timestamptz NOT NULL DEFAULT statement_timestamp(),
    PRIMARY KEY (shard, recipient_key, tenant_id, recipient)
);
-- A tenant's list, and the list of recipients who have opted out of anything.
CREATE INDEX recipients_list ON recipients (tenant_id, recipient);
CREATE INDEX recipients_opted_out ON recipients (tenant_id, recipient)
    WHERE opt_out_all OR opt_out_channels <> '{}' OR opt_out_categories <> '{}';

-- +goose StatementBegin
-- The addresses of a recipient, in lower case.
CREATE FUNCTION address_list(addresses jsonb) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT array_agg(lower(value)) FROM jsonb_each_text(addresses) $$;
-- +goose StatementEnd
-- Recipients by an address.
CREATE INDEX recipients_address ON recipients USING gin (address_list(addresses));

-- Recipients whose addresses are suppressed.
CREATE INDEX recipients_address_keys ON recipients USING gin (address_keys);

-- The addresses to which a tenant's channels send nothing.
CREATE TABLE suppressions (
    tenant_id   uuid NOT NULL REFERENCES tenants,
    channel     text NOT NULL,
    address     text NOT NULL,                        -- in the form in which addresses are compared (internal/suppression)
    reason      text NOT NULL CHECK (reason IN ('hard_bounce', 'complaint', 'stop', 'unregistered', 'manual')),
    address_key bigint NOT NULL,                      -- 64 bits of SHA-256 over tenant, channel and address
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    until       timestamptz,                          -- null: no end
    push_id     uuid,                                 -- the push that the provider or the owner answered; null: none
    PRIMARY KEY (tenant_id, address, channel, reason)
);
-- By an address of a booking or of an attempt.
CREATE INDEX suppressions_key ON suppressions (address_key);
-- Entries that have ended: for their removal.
CREATE INDEX suppressions_until ON suppressions (until) WHERE until IS NOT NULL;

-- Recipients with very many bookings, which API processes keep in memory. The version changes in every transaction that adds or
-- removes a booking, so that a process knows whether its copy is current.
CREATE TABLE crowds (
    recipient_key bigint PRIMARY KEY,
    version       uuid NOT NULL DEFAULT gen_random_uuid()
) WITH (fillfactor = 50);

-- Every policy that a tenant has had. They are kept, because the audit checks each send by the policy of its time.
CREATE TABLE policies (
    tenant_id uuid NOT NULL REFERENCES tenants,
    version   bigint NOT NULL CHECK (version > 0),
    at        timestamptz NOT NULL DEFAULT clock_timestamp(), -- from then on it is in force
    by        text NOT NULL DEFAULT '',               -- the id of the API key, or the operator's tool
    document  json,                                   -- null: from then on the policy in the operator's file
    PRIMARY KEY (tenant_id, version)
);

-- Operations that apply a change of a policy to existing bookings. At most one of a tenant is running.
CREATE TABLE policy_operations (
    id          uuid PRIMARY KEY,
    tenant_id   uuid NOT NULL REFERENCES tenants,
    version     bigint NOT NULL,                      -- of the policy
    apply       text NOT NULL CHECK (apply IN ('new_only', 'reslot', 'cancel')),
    status      text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'finished', 'replaced')),
    settled_at  timestamptz,                          -- when all transactions that decided by an older version had committed; null: not yet
    rechecked   bigint NOT NULL DEFAULT 0,            -- pushes that a rule had put off, and that are due again
    after_at    timestamptz NOT NULL DEFAULT '-infinity', -- the position, by send time and id, of the last push that was checked
    after_id    uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    looked      bigint NOT NULL DEFAULT 0,
    moved       bigint NOT NULL DEFAULT 0,
    canceled    bigint NOT NULL DEFAULT 0,
    worker      uuid,                                 -- the worker that has it
    lease_until timestamptz,                          -- after this, another worker may take it
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at    timestamptz,
    CHECK ((status = 'running') = (ended_at IS NULL))
);
CREATE UNIQUE INDEX policy_operations_running ON policy_operations (tenant_id) WHERE status = 'running';

-- How many pushes a tenant's shadow rules would have refused, by the minute of their submits.
CREATE TABLE policy_shadows (
    tenant_id    uuid NOT NULL REFERENCES tenants,
    minute       timestamptz NOT NULL,
    rule         text NOT NULL,
    category     text NOT NULL,
    would_refuse bigint NOT NULL,
    PRIMARY KEY (tenant_id, minute, rule, category)
);
-- Rows to be removed.
CREATE INDEX policy_shadows_minute ON policy_shadows (minute);


-- Pushes --------------------------------------------------------------------------------------------------------------------------

-- Every push, in partitions of a week of the send time. While an attempt is under way, the status is still scheduled: only the
-- table live has the attempt.
CREATE TABLE pushes (
    id                 uuid NOT NULL,                 -- contains the shard, and the week of the first send time
    tenant_id          uuid NOT NULL,                 -- no foreign key: a booking locks nothing that all bookings of a tenant share
    shard              smallint NOT NULL,
    recipient_key      bigint NOT NULL,               -- 64 bits of SHA-256 over tenant and recipient: names the recipient's lock
    recipient          text NOT NULL,                 -- '': it was erased
    channel            text NOT NULL,
    category           text NOT NULL DEFAULT '',
    level              smallint NOT NULL DEFAULT 1,   -- the service level of its category: 0 urgent, 1 normal, 2 bulk
    address            text NOT NULL DEFAULT '',
    address_key        bigint,                        -- of the address, as in suppressions; null: it has none
    message            json NOT NULL,
    rendering          json,                          -- the template of a message that contains the time of its sending; null: it does not
    metadata           json,
    campaign_id        uuid,                          -- null: no campaign

    requested_send_at  timestamptz NOT NULL,
    send_at            timestamptz NOT NULL,          -- the promise
    next_at            timestamptz NOT NULL,          -- when to try next
    expires_at         timestamptz NOT NULL,
    ttl_ms             bigint NOT NULL DEFAULT 0,     -- expires_at moves with send_at by this; 0: the caller fixed expires_at

    status             text NOT NULL DEFAULT 'scheduled'
                       CONSTRAINT pushes_status CHECK (status IN ('scheduled', 'sent', 'failed', 'canceled', 'expired')),
    plan               bigint NOT NULL DEFAULT 0,     -- 1 when it is booked; grows with every change that is not a claim
    freed              bool NOT NULL DEFAULT false,   -- it released its place in the quota
    attempts           int NOT NULL DEFAULT 0,        -- that have ended
    attempted_at       timestamptz,                   -- when the first attempt began; null: none has ended
    possibly_delivered bool NOT NULL DEFAULT false,
    last_error         text NOT NULL DEFAULT '',
    held_by            text NOT NULL DEFAULT '',      -- the last reason why it was not sent when it was due: a rule, quiet hours, or 'pause:' and a scope
    held_since         timestamptz,                   -- null: it was not held
    held_until         timestamptz,                   -- an estimate while it waits

    retry_of           uuid,                          -- the push that it retries
    retry_first        uuid,                          -- the first push of that chain
    retry_latest       uuid,                          -- of a first push: the latest retry
    retry_doubt        bool,                          -- one of the pushes that it retries may have been delivered

    idempotency_id     uuid,                          -- stands for the Idempotency-Key of the request, if it had one
    idempotency_hash   bytea,                         -- SHA-256 of that request
    request_id         text NOT NULL DEFAULT '',      -- the X-Request-Id of the submit: leads from a worker's log to the API's
    created_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    moved_at           timestamptz,                   -- when it was given another send time last; null: it has its first one
    CONSTRAINT pushes_shard CHECK (shard = recipient_key & 255),
    CONSTRAINT pushes_send_at CHECK (send_at = date_trunc('second', send_at))
) PARTITION BY RANGE (send_at);

-- The order of the indexes matters. All indexes of an empty partition cost the same, and then the planner takes the newest one. So it
-- finds a push by its id in the primary key and not in pushes_tenant, and a recipient's pushes in the last index.
--
-- A tenant's list.
CREATE INDEX pushes_tenant ON pushes (tenant_id, send_at, id);
-- A tenant's list of pushes that failed, expired or were canceled, without the sent ones. Only a query with the same condition can use
-- this index. The end of a sent push changes no column of an index, and so stays cheap (HOT).
CREATE INDEX pushes_freed ON pushes (tenant_id, send_at, id) WHERE freed::int = 1;
-- Pushes to an address that is suppressed.
CREATE INDEX pushes_address ON pushes (address_key) WHERE address_key IS NOT NULL;
ALTER TABLE pushes ADD PRIMARY KEY (id, send_at, shard);
-- A recipient's bookings around a time, apart from the many pushes that may have released their places.
CREATE INDEX pushes_bookings ON pushes (recipient_key, freed, send_at);

-- One narrow row for each push that has not ended. Workers find and claim due pushes here, and remove the row when the push ends. A
-- statement that changes a push locks its row here first, and then its row in pushes.
CREATE TABLE live (
    recipient_key bigint NOT NULL,
    send_at       timestamptz NOT NULL,
    next_at       timestamptz NOT NULL,               -- when to try next; under way: when the attempt counts as lost; infinity: it is parked
    expires_at    timestamptz NOT NULL,
    started_at    timestamptz,                        -- of the attempt under way
    plan          bigint NOT NULL,                    -- as in pushes
    attempts      int NOT NULL DEFAULT 0,             -- with the one under way
    phase         smallint NOT NULL,                  -- its rank while it waits; 6: an attempt is under way
    shard         smallint NOT NULL,
    rank          smallint NOT NULL,                  -- 0 urgent, 2 normal, 4 bulk; 1 more: its tenant has many pushes for the same second
    more_due      bool NOT NULL DEFAULT false,        -- another push of the recipient waits for this attempt to end
    cancel_asked  bool NOT NULL DEFAULT false,        -- a bulk cancel found an attempt under way: if that does not send it, it is canceled
    put_off_at    timestamptz,                        -- when a rule put it off to next_at; null: no rule did
    push_id       uuid NOT NULL,
    tenant_id     uuid NOT NULL,
    token         uuid,                               -- names the attempt under way
    campaign_id   uuid,
    pause_id      uuid,                               -- the pause that parked it; null: none did. Without one, its campaign has parked it
    channel       text NOT NULL,                      -- '*': a channel that the tenant has made
    own_channel   text,                               -- the name of that channel; null: the channel is the operator's
    address_key   bigint,                             -- of the address of the attempt under way, as in suppressions; null: it has none
    PRIMARY KEY (recipient_key, send_at, push_id, shard),
    CONSTRAINT live_shard CHECK (shard = recipient_key & 255),
    CONSTRAINT live_under_way CHECK ((phase = 6) = (token IS NOT NULL AND started_at IS NOT NULL)),
    CONSTRAINT live_own CHECK ((channel = '*') = (own_channel IS NOT NULL)),
    CONSTRAINT live_phase CHECK (phase IN (rank, 6) AND rank BETWEEN 0 AND 5)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.5,
    autovacuum_analyze_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- Pushes of a lane that are due, or will be, and leases that end. The recipient key has another form than in the primary key, so that
-- no statement can use this index to find one recipient, whatever the statistics are.
CREATE INDEX live_lane ON live (channel, phase, next_at, (recipient_key & 255), (recipient_key >> 8));
-- The pushes through a channel that its tenant has made. The planner needs the condition in the query.
CREATE INDEX live_own ON live (tenant_id, own_channel, phase, next_at, (recipient_key & 255), (recipient_key >> 8)) WHERE own_channel IS NOT NULL;
-- A tenant's pushes that have not ended: to count them, and to list them by send time. The columns have another form for the same reason.
CREATE INDEX live_list ON live (tenant_id, (send_at AT TIME ZONE 'UTC'), (uuid_send(push_id)));
-- A campaign's pushes that have not ended. Most pushes have no campaign.
CREATE INDEX live_campaign ON live (campaign_id, next_at) WHERE campaign_id IS NOT NULL;
-- A tenant's pushes that a rule put off: another policy, or other limits of the recipient, may permit them. There are few.
CREATE INDEX live_put_off ON live (tenant_id, recipient_key) WHERE put_off_at IS NOT NULL;
-- The pushes that pauses have parked: to continue with them, to count them without reading their rows, and to end them when they expire.
CREATE INDEX live_paused ON live (pause_id, channel) WHERE pause_id IS NOT NULL;
CREATE INDEX live_paused_expiry ON live (expires_at) WHERE pause_id IS NOT NULL;

-- Every attempt that has ended, in partitions of a day of its begin.
CREATE TABLE sends (
    push_id             uuid NOT NULL,
    attempt             int NOT NULL CONSTRAINT sends_attempt CHECK (attempt > 0),
    tenant_id           uuid NOT NULL,
    recipient_key       bigint NOT NULL,
    recipient           text NOT NULL,                -- '': it was erased
    channel             text NOT NULL,
    started_at          timestamptz NOT NULL,
    lease_until         timestamptz NOT NULL,
    handed_at           timestamptz,                  -- when the request was fully written, if the provider accepted it
    ended_at            timestamptz,
    outcome             text CONSTRAINT sends_outcome CHECK (outcome IN ('delivered', 'refused', 'unknown')),
    provider_message_id text NOT NULL DEFAULT '',
    error               text NOT NULL DEFAULT '',
    shard               smallint NOT NULL,
    category            text NOT NULL DEFAULT '',
    campaign_id         uuid,
    send_at             timestamptz,                  -- the promise
    segments            int,                          -- of the text message that the provider was sent; null: it was none, or is not known
    address_key         bigint,                       -- of the address, as in suppressions; null: it has none, or it was erased
    CONSTRAINT sends_shard CHECK (shard = recipient_key & 255),
    CONSTRAINT sends_end CHECK ((ended_at IS NULL) = (outcome IS NULL)),
    CONSTRAINT sends_order CHECK (ended_at >= started_at)
) PARTITION BY RANGE (started_at);

-- A tenant's list. Only a query with the same condition can use this index: the reads of one recipient have their own.
CREATE INDEX sends_tenant ON sends (tenant_id, started_at, push_id) WHERE outcome || '' <> '';
ALTER TABLE sends ADD PRIMARY KEY (push_id, attempt, started_at, shard);
-- A recipient's actual sends, for the check at delivery. It is the newest index, as in pushes.
CREATE INDEX sends_recipient ON sends (recipient_key, started_at);

-- The pushes of requests with an Idempotency-Key, in partitions of a week: a row for each push. It outlives the push, so that a
-- repeated request gets its answer and books nothing twice.
CREATE TABLE idempotency (
    idempotency_id uuid NOT NULL,                     -- stands for the tenant's Idempotency-Key
    member         uuid NOT NULL,                     -- stands for the key and the number of the push in the request
    push_id        uuid NOT NULL,
    tenant_id      uuid NOT NULL,
    hash           bytea NOT NULL,                    -- SHA-256 of the request
    send_at        timestamptz NOT NULL,              -- the first send time of the push
    created_at     timestamptz NOT NULL
) PARTITION BY RANGE (created_at);
-- The rows of a key. The lock of the key ensures that there is one for each push: a unique index would need created_at.
CREATE INDEX idempotency_key ON idempotency (idempotency_id);


-- Pauses --------------------------------------------------------------------------------------------------------------------------

-- What must not be sent for a while. A claim parks the due pushes that a pause covers. After the end of a pause, workers make its pushes
-- due again, and then remove the row.
CREATE TABLE pauses (
    id         uuid PRIMARY KEY,
    tenant_id  uuid REFERENCES tenants,               -- null: the operator's, for all tenants
    scope      text NOT NULL CHECK (scope IN ('all', 'channel', 'category', 'campaign')),
    name       text NOT NULL DEFAULT '' CHECK ((name = '') = (scope = 'all')),
    reason     text NOT NULL DEFAULT '',
    until      timestamptz,                           -- null: until somebody ends it
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at   timestamptz                            -- null: it is in force, unless until has passed
);
-- A tenant's pauses that have not ended: one of each scope and name.
CREATE UNIQUE INDEX pauses_scope ON pauses (coalesce(tenant_id, '00000000-0000-0000-0000-000000000000'), scope, name) WHERE ended_at IS NULL;
-- Pauses to end, and pauses with pushes to continue with.
CREATE INDEX pauses_until ON pauses (until) WHERE ended_at IS NULL AND until IS NOT NULL;
CREATE INDEX pauses_ended ON pauses (ended_at) WHERE ended_at IS NOT NULL;
-- Of one tenant, ended or not: for its deletion.
CREATE INDEX pauses_tenant ON pauses (tenant_id, created_at, id);


-- Webhooks ------------------------------------------------------------------------------------------------------------------------

-- Tenants' endpoints for events.
CREATE TABLE webhooks (
    id               uuid PRIMARY KEY,
    tenant_id        uuid NOT NULL REFERENCES tenants,
    url              text NOT NULL,
    events           text[] NOT NULL,
    secret           bytea NOT NULL,                  -- sealed (internal/seal), because programs must read it to sign; empty: lost or wiped
    old_secret       bytea NOT NULL DEFAULT '',       -- sealed; empty: none
    old_secret_until timestamptz,                     -- until then, both sign
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    failures         int NOT NULL DEFAULT 0,          -- since the last success
    failing_since    timestamptz,
    disabled_at      timestamptz,
    disabled_reason  text NOT NULL DEFAULT '',
    deleted_at       timestamptz                      -- the row goes when its deliveries are gone
);
CREATE INDEX webhooks_tenant ON webhooks (tenant_id, created_at) WHERE deleted_at IS NULL;
-- The webhooks that a change of a push concerns: every change queries them.
CREATE INDEX webhooks_on ON webhooks (tenant_id) WHERE disabled_at IS NULL AND deleted_at IS NULL;
CREATE INDEX webhooks_deleted ON webhooks (deleted_at) WHERE deleted_at IS NOT NULL;

-- The outbox: one row for each event and webhook, written by the transaction that made the event happen.
CREATE TABLE webhook_deliveries (
    id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    seq         bigint NOT NULL GENERATED ALWAYS AS IDENTITY, -- the events of one push come in this order, because its row was locked
    webhook_id  uuid NOT NULL,                        -- no foreign key: a change of a push waits for no webhook
    tenant_id   uuid NOT NULL,
    push_id     uuid,                                 -- null: about no push, and in no order
    event       text NOT NULL,
    payload     json NOT NULL,                        -- sent unchanged
    status      text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'sending', 'delivered', 'failed')),
    attempts    int NOT NULL DEFAULT 0,
    next_at     timestamptz NOT NULL DEFAULT clock_timestamp(), -- when to try; while it is sending: when it counts as lost
    last_status int NOT NULL DEFAULT 0,               -- of the last answer; 0: there was none
    last_error  text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    queued_at   timestamptz NOT NULL DEFAULT clock_timestamp(), -- when it was created or replayed
    ended_at    timestamptz,
    CHECK ((status IN ('delivered', 'failed')) = (ended_at IS NOT NULL))
);
-- Due deliveries, by webhook. Queries must repeat the condition.
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (webhook_id, next_at) WHERE status IN ('waiting', 'sending');
-- The few deliveries under way. Queries for them cannot use the index above, because it also has all waiting ones.
CREATE INDEX webhook_deliveries_sending ON webhook_deliveries (webhook_id) WHERE status || '' = 'sending';
-- The events of a push, in order.
CREATE INDEX webhook_deliveries_push ON webhook_deliveries (webhook_id, push_id, seq);
CREATE INDEX webhook_deliveries_list ON webhook_deliveries (webhook_id, seq);
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (webhook_id, seq) WHERE status = 'failed';
CREATE INDEX webhook_deliveries_old ON webhook_deliveries (queued_at);


-- Campaigns -----------------------------------------------------------------------------------------------------------------------

-- One message for every recipient of an audience.
CREATE TABLE campaigns (
    id               uuid PRIMARY KEY,
    tenant_id        uuid NOT NULL REFERENCES tenants,
    name             text NOT NULL,
    channel          text NOT NULL,
    category         text NOT NULL DEFAULT '',
    send_at          timestamptz,                     -- null: local_time, or when it is started
    local_time       timestamp,                       -- on the clocks of each recipient
    time_zone        text NOT NULL DEFAULT '',        -- of local_time; '': the recipient's, or else the default of the policy
    spread_s         bigint NOT NULL DEFAULT 0,       -- the recipients are spread over this number of seconds
    on_conflict      text NOT NULL DEFAULT 'reject' CHECK (on_conflict IN ('reject', 'defer')),
    latest           timestamptz,
    expires_after_ms bigint NOT NULL DEFAULT 0,       -- after each send time; 0: the default
    message          json NOT NULL,                   -- with templates in its strings
    metadata         json,
    request_hash     bytea,                           -- of the request that made it, if that had an Idempotency-Key
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at       timestamptz NOT NULL DEFAULT clock_timestamp(),

    status           text NOT NULL DEFAULT 'draft'
        CHECK (status IN ('draft', 'starting', 'running', 'pausing', 'paused', 'canceling', 'canceled', 'finished')),
    audience_id      uuid,                            -- the upload that brought its recipients; null: it has no audience
    audience         bigint NOT NULL DEFAULT 0,       -- recipients in it
    started_at       timestamptz,
    paused_at        timestamptz,                     -- the last time
    ended_at         timestamptz,

    -- The work of the workers. Each transaction that books some of the recipients counts them here.
    worker           uuid,                            -- the worker that has it
    lease_until      timestamptz,                     -- after this, another worker may take it
    parked           bool NOT NULL DEFAULT false,     -- some of its waiting pushes are parked
    booked           bigint NOT NULL DEFAULT 0,       -- pushes that were made
    deferred         bigint NOT NULL DEFAULT 0,       -- of these, at another time than requested
    refused          bigint NOT NULL DEFAULT 0,
    opted_out        bigint NOT NULL DEFAULT 0,
    invalid          bigint NOT NULL DEFAULT 0,
    dropped          bigint NOT NULL DEFAULT 0,       -- never booked, because it was canceled before
    told             smallint NOT NULL DEFAULT 0,     -- the tenths of its progress that were sent as events

    -- The ends of its pushes. It keeps these counts when the pushes are removed. Null: it has not ended.
    sent             bigint,
    segments         bigint,                          -- of the text messages among the sent ones
    failed           bigint,
    expired          bigint,
    withdrawn        bigint,
    CHECK ((status IN ('canceled', 'finished')) = (ended_at IS NOT NULL)),
    CHECK (send_at IS NULL OR local_time IS NULL)
);
CREATE INDEX campaigns_list ON campaigns (tenant_id, created_at, id);
-- Campaigns with work for a worker.
CREATE INDEX campaigns_open ON campaigns (lease_until) WHERE status IN ('starting', 'running', 'pausing', 'paused', 'canceling');
-- A tenant's campaigns that have not ended: their number is limited.
CREATE INDEX campaigns_unended ON campaigns (tenant_id) WHERE ended_at IS NULL;

-- The recipients of campaigns, as they were uploaded. An upload that is not an audience, because another one has replaced it or it did
-- not arrive completely, is removed a portion at a time.
CREATE TABLE campaign_recipients (
    shard             smallint NOT NULL CHECK (shard = recipient_key & 255),
    audience_id       uuid NOT NULL,
    recipient_key     bigint NOT NULL,
    recipient         text NOT NULL,                  -- '': it was erased
    tenant_id         uuid NOT NULL,
    campaign_id       uuid NOT NULL,
    line              int NOT NULL,                   -- where the record begins; the header of a CSV is line 1
    address           text NOT NULL DEFAULT '',
    variables         json,                           -- an object of the other columns
    outcome           text CHECK (outcome IN ('booked', 'refused', 'opted_out', 'invalid', 'canceled')), -- null: still to be booked
    push_id           uuid,                           -- of a booked one
    requested_send_at timestamptz,
    reason            text NOT NULL DEFAULT '',       -- the name of the API's problem, or what is invalid
    rules             text[],                         -- the rules that refuse it
    conflicts         json,                           -- the bookings in its way
    decided_at        timestamptz,
    PRIMARY KEY (audience_id, shard, recipient_key, recipient)
);
-- In the order of the lines.
CREATE INDEX campaign_recipients_line ON campaign_recipients (audience_id, line);
-- Of one recipient: for erasures.
CREATE INDEX campaign_recipients_key ON campaign_recipients (recipient_key);
-- For the list of refusals.
CREATE INDEX campaign_recipients_refused ON campaign_recipients (tenant_id, decided_at) WHERE outcome IN ('refused', 'opted_out');

-- Uploads that arrive, or have arrived. Recipients of an upload that is neither here nor the audience of a campaign are removed.
CREATE TABLE campaign_uploads (
    id               uuid PRIMARY KEY,
    tenant_id        uuid NOT NULL REFERENCES tenants,
    campaign_id      uuid NOT NULL,
    began_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    alive_until      timestamptz NOT NULL,            -- a process renews it while the upload arrives
    ended            bool NOT NULL DEFAULT false,     -- it is no longer an audience, and is to be removed
    bytes            bigint NOT NULL DEFAULT 0,       -- of its lines, which count for the tenant's cap until the row is removed

    -- Of an upload that is the copy of another audience, which it protects from removal:
    copy_of          uuid,
    copied_shard     smallint NOT NULL DEFAULT -1,    -- the position of the last copied recipient
    copied_key       bigint NOT NULL DEFAULT 0,
    copied_recipient text NOT NULL DEFAULT '',
    copied           bigint NOT NULL DEFAULT 0        -- number of copied recipients
);
CREATE INDEX campaign_uploads_campaign ON campaign_uploads (campaign_id);
CREATE INDEX campaign_uploads_tenant ON campaign_uploads (tenant_id);
CREATE INDEX campaign_uploads_copy ON campaign_uploads (copy_of) WHERE copy_of IS NOT NULL;
-- Uploads whose process may have died, and uploads to be removed.
CREATE INDEX campaign_uploads_alive ON campaign_uploads (alive_until) WHERE NOT ended;
CREATE INDEX campaign_uploads_ended ON campaign_uploads (id) WHERE ended;


-- Schedules -----------------------------------------------------------------------------------------------------------------------

-- Pushes and campaigns that are made again and again. All occurrences up to done_at are in schedule_runs.
CREATE TABLE schedules (
    id            uuid PRIMARY KEY,
    tenant_id     uuid NOT NULL REFERENCES tenants,
    name          text NOT NULL,
    cron          text NOT NULL,
    time_zone     text NOT NULL,
    push          json NOT NULL,                      -- the pattern of each push
    recipient_key bigint,                             -- of the recipient in the pattern: an erasure finds it by this
    campaign_id   uuid,                               -- the pattern of each campaign, instead of push; null: none
    catch_up      text NOT NULL CHECK (catch_up IN ('skip', 'last')),
    paused        bool NOT NULL,
    until         timestamptz,                        -- exclusive; null: no end
    began_at      timestamptz NOT NULL,               -- an @every counts from here
    done_at       timestamptz NOT NULL,
    next_at       timestamptz,                        -- the first occurrence after done_at; null: there is none
    request_hash  bytea,                              -- of the request that made it, if that had an Idempotency-Key
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    deleted_at    timestamptz                         -- it is removed with its runs, a portion at a time
);
CREATE INDEX schedules_list ON schedules (tenant_id, id) WHERE deleted_at IS NULL;
CREATE INDEX schedules_next ON schedules (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_due ON schedules (tenant_id, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_deleted ON schedules (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX schedules_campaign ON schedules (campaign_id) WHERE campaign_id IS NOT NULL;

-- The result of each occurrence. A row without an outcome is an occurrence that was begun and is to be submitted.
CREATE TABLE schedule_runs (
    schedule_id uuid NOT NULL REFERENCES schedules,
    at          timestamptz NOT NULL,
    tenant_id   uuid NOT NULL,
    outcome     text CHECK (outcome IN ('submitted', 'refused', 'skipped')),
    push_id     uuid,
    campaign_id uuid,                                 -- the campaign that it has made
    reason      text NOT NULL DEFAULT '',
    rules       text[] NOT NULL DEFAULT '{}',         -- the rules that refused it
    detail      text NOT NULL DEFAULT '',
    begun_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (schedule_id, at)
);
CREATE INDEX schedule_runs_begun ON schedule_runs (tenant_id, at, schedule_id) WHERE outcome IS NULL;
CREATE INDEX schedule_runs_old ON schedule_runs (at);


-- Bulk changes --------------------------------------------------------------------------------------------------------------------

-- Changes of all scheduled pushes that fit a filter. Workers carry them out.
CREATE TABLE bulk_changes (
    id            uuid PRIMARY KEY,
    tenant_id     uuid NOT NULL REFERENCES tenants,
    action        text NOT NULL CHECK (action IN ('cancel', 'move')),

    -- The filter.
    recipient     text NOT NULL DEFAULT '',           -- '': any
    recipient_key bigint,                             -- of recipient
    erased        bool NOT NULL DEFAULT false,        -- the recipient of the filter was erased
    channel       text NOT NULL DEFAULT '',
    category      text NOT NULL DEFAULT '',
    campaign_id   uuid,
    from_at       timestamptz,                        -- from_at <= send time < until_at
    until_at      timestamptz,

    shift_s       bigint NOT NULL DEFAULT 0,          -- of a move: the shift in seconds
    send_at       timestamptz,                        -- of a move: to this time
    actor         text NOT NULL CHECK (actor IN ('user', 'key', 'system')), -- of the request
    actor_id      uuid,                               -- of the user or the API key
    request_hash  bytea,                              -- of the request that made it, if that had an Idempotency-Key
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at      timestamptz,
    status        text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'canceling', 'canceled', 'done')),

    -- The work of the workers.
    worker        uuid,                               -- the worker that has it
    lease_until   timestamptz,                        -- after this, another worker may take it
    resume_at     timestamptz,                        -- all that is left is being sent: look again then
    after_at      timestamptz NOT NULL DEFAULT '-infinity', -- the position, by send time and id, of the last listed push
    after_id      uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    listed        bool NOT NULL DEFAULT false,        -- all pushes are listed
    found         bigint NOT NULL DEFAULT 0,
    changed       bigint NOT NULL DEFAULT 0,
    refused       json NOT NULL DEFAULT '{}',         -- their numbers, by reason
    CHECK ((status IN ('canceled', 'done')) = (ended_at IS NOT NULL)),
    CHECK ((action = 'move') = (shift_s <> 0 OR send_at IS NOT NULL))
);
CREATE INDEX bulk_changes_list ON bulk_changes (tenant_id, created_at, id);
-- Changes with work for a worker.
CREATE INDEX bulk_changes_open ON bulk_changes (lease_until) WHERE ended_at IS NULL;
-- A tenant's changes that still list their pushes: for moves.
CREATE INDEX bulk_changes_listing ON bulk_changes (tenant_id) WHERE ended_at IS NULL AND NOT listed;
-- Changes to be removed.
CREATE INDEX bulk_changes_ended ON bulk_changes (ended_at) WHERE ended_at IS NOT NULL;
-- Of one recipient: for erasures.
CREATE INDEX bulk_changes_recipient ON bulk_changes (recipient_key) WHERE recipient_key IS NOT NULL;

-- The pushes of a bulk change, with the send times that they had when it was made. Workers list them. A transaction that moves a push
-- before that adds it, so that the change applies to what matched when it was made.
CREATE TABLE bulk_change_pushes (
    change_id     uuid NOT NULL,
    push_id       uuid NOT NULL,
    recipient_key bigint NOT NULL,
    send_at       timestamptz NOT NULL,
    outcome       text NOT NULL DEFAULT '',           -- '': not decided yet; changed; the reason of its refusal; or outside: it did not match, and was moved since
    rules         text[],                             -- the rules that refused it
    sending_since timestamptz,                        -- when it was found being sent first
    again_at      timestamptz,                        -- it was being sent: look again then
    PRIMARY KEY (change_id, push_id)
);
-- The pushes to decide next, by send time, forwards or backwards.
CREATE INDEX bulk_change_pushes_undecided ON bulk_change_pushes (change_id, send_at, push_id) WHERE outcome = '';
CREATE INDEX bulk_change_pushes_refused ON bulk_change_pushes (change_id, send_at, push_id) WHERE outcome NOT IN ('', 'changed', 'outside');
-- Of one recipient: for erasures.
CREATE INDEX bulk_change_pushes_key ON bulk_change_pushes (recipient_key);


-- Statistics ----------------------------------------------------------------------------------------------------------------------

-- Changes of pushes to be counted. The transaction that makes a change adds a row; a worker adds the rows to the numbers below every
-- few seconds, and removes them.
CREATE TABLE stat_deltas (
    tenant_id   uuid NOT NULL,
    shard       smallint NOT NULL,                    -- of one of the recipients
    what        text NOT NULL CHECK (what IN ('accepted', 'moved', 'sent', 'failed', 'expired', 'canceled', 'refused', 'rule')),
    hour        timestamptz NOT NULL,                 -- of the count: the hour of the submit, or of the end
    send_hour   timestamptz,                          -- of the promised send time; null: of a refusal
    channel     text NOT NULL,
    category    text NOT NULL,
    level       smallint NOT NULL,                    -- as in pushes
    campaign_id uuid,
    rule        text NOT NULL DEFAULT '',             -- the rule that refused
    n           int NOT NULL,                         -- pushes; of moved: pushes that came to that hour; negative: pushes that left it
    deferred    int NOT NULL DEFAULT 0,               -- of the accepted ones
    segments    int NOT NULL DEFAULT 0,               -- of the text messages among the sent ones
    late        smallint[]                            -- of the sent ones: the lateness of each, as a bucket of the histograms
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1);

-- A tenant's numbers: one row for each combination of an hour, a day, or all time, and a key.
CREATE TABLE stats (
    tenant_id uuid NOT NULL,
    step      text NOT NULL CHECK (step IN ('hour', 'day', 'ever')), -- of UTC; ever: of campaigns only
    of        text NOT NULL CHECK (of IN ('total', 'channel', 'category', 'level', 'campaign', 'rule')),
    at        timestamptz NOT NULL,                   -- when the hour or the day began
    key       text NOT NULL,                          -- the channel, the category and so on; '': of total, or of pushes without one
    accepted  bigint NOT NULL DEFAULT 0,
    deferred  bigint NOT NULL DEFAULT 0,              -- of the accepted ones
    refused   bigint NOT NULL DEFAULT 0,
    sent      bigint NOT NULL DEFAULT 0,
    failed    bigint NOT NULL DEFAULT 0,
    expired   bigint NOT NULL DEFAULT 0,
    canceled  bigint NOT NULL DEFAULT 0,
    segments  bigint NOT NULL DEFAULT 0,              -- of the text messages among the sent ones
    late      bytea,                                  -- a histogram of the lateness of sent pushes
    PRIMARY KEY (tenant_id, step, of, at, key)
) WITH (fillfactor = 80);
CREATE INDEX stats_old ON stats (at) WHERE step = 'hour';

-- How many pushes wait for a send time in an hour.
CREATE TABLE ahead (
    tenant_id   uuid NOT NULL,
    hour        timestamptz NOT NULL,
    channel     text NOT NULL,
    category    text NOT NULL,
    campaign_id uuid NOT NULL,                        -- all zeros: no campaign
    n           bigint NOT NULL,
    PRIMARY KEY (tenant_id, hour, channel, category, campaign_id)
) WITH (fillfactor = 80);

-- When a tenant's waiting pushes were last counted one by one, for the table ahead. A tenant without a row is counted next.
CREATE TABLE recounts (
    tenant_id uuid PRIMARY KEY REFERENCES tenants,
    at        timestamptz NOT NULL
);


-- Workers -------------------------------------------------------------------------------------------------------------------------

-- The owners of lanes. A lane is a range of the 256 shards; the row of its first shard stands for it.
CREATE TABLE lanes (
    shard       smallint PRIMARY KEY CHECK (shard BETWEEN 0 AND 255),
    owner       uuid,
    owned_until timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);
INSERT INTO lanes (shard) SELECT generate_series(0, 255);

-- Each worker's view of each channel, and of the tenants that it holds there. The worker writes it every few seconds and when it changes,
-- and never for a push. An old row belongs to a worker that is gone.
CREATE TABLE channel_views (
    worker     uuid NOT NULL,
    channel    text NOT NULL,
    tenant_id  uuid NOT NULL,                         -- that is held; all zeros: the view is of the channel, for all tenants
    state      text NOT NULL CHECK (state IN ('working', 'trying', 'paused', 'failing')),
    held_until timestamptz,                           -- when the pause of a paused or failing channel ends
    seen_at    timestamptz NOT NULL,
    PRIMARY KEY (worker, channel, tenant_id)
) WITH (fillfactor = 50);

-- The outcomes of attempts in the last minutes, for the health of channels: a row for each tenant, channel, minute and worker. A worker adds
-- its counts every few seconds, never in the transaction of a push. The last counts of a killed worker are missing.
CREATE TABLE channel_outcomes (
    tenant_id uuid NOT NULL,
    channel   text NOT NULL,
    minute    timestamptz NOT NULL,                   -- when it was added
    worker    uuid NOT NULL,
    attempts  int NOT NULL,                           -- that ended
    rejected  int NOT NULL,                           -- of them: refused permanently, not because of one address alone
    failed    int NOT NULL,                           -- of them: see push.ChannelOutcomes
    PRIMARY KEY (tenant_id, channel, minute, worker)
) WITH (fillfactor = 70);
CREATE INDEX channel_outcomes_minute ON channel_outcomes (minute);

-- The channels that are unhealthy for tenants, after the event was written. A row is removed when the channel has been healthy for five
-- minutes.
CREATE TABLE unhealthy_channels (
    tenant_id uuid NOT NULL,
    channel   text NOT NULL,
    since     timestamptz NOT NULL,
    seen_at   timestamptz NOT NULL,                   -- when it was last unhealthy
    PRIMARY KEY (tenant_id, channel)
) WITH (fillfactor = 50);


-- Audits and the audit log --------------------------------------------------------------------------------------------------------

-- The progress of the workers' audit: one row. One worker at a time owns it.
CREATE TABLE audit_pass (
    one         bool PRIMARY KEY DEFAULT true CHECK (one),
    owner       uuid,
    owned_until timestamptz NOT NULL DEFAULT '-infinity',
    state       jsonb,                                -- of the pass that is going on: its position and its findings
    last        jsonb                                 -- the same of the pass that ended last
) WITH (fillfactor = 50);
INSERT INTO audit_pass DEFAULT VALUES;

-- The hours of send times that the workers' audit has read. A closed hour is not read again.
CREATE TABLE audited (
    slice      timestamptz PRIMARY KEY,               -- when the hour began
    closed     bool NOT NULL,                         -- nothing in it can change any more, and it has no violation
    looked_at  timestamptz NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT '-infinity' -- when an attempt that began in it was changed long after its end
);

-- The passes that have ended, and their findings about each tenant. A pass without findings has no row in the second table.
CREATE TABLE audits (
    began_at timestamptz PRIMARY KEY,
    ended_at timestamptz NOT NULL,
    complete bool NOT NULL                            -- the findings of all tenants were kept
);
CREATE TABLE audit_findings (
    tenant_id  uuid NOT NULL,
    began_at   timestamptz NOT NULL,                  -- of the pass
    check_name text NOT NULL,
    violations int NOT NULL,
    pushes     uuid[] NOT NULL,                       -- of the first ten
    PRIMARY KEY (tenant_id, began_at, check_name)
);
CREATE INDEX audit_findings_began ON audit_findings (began_at);

-- The audit log, in partitions of a week: one row for each change, written by the transaction that makes it.
CREATE TABLE audit_log (
    id         uuid NOT NULL DEFAULT gen_random_uuid(),
    tenant_id  uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor      text NOT NULL CONSTRAINT audit_log_actor CHECK (actor IN ('user', 'key', 'link', 'system')),
    actor_id   uuid,                                  -- of the user, the API key or the link; null: of the system
    actor_name text NOT NULL DEFAULT '',              -- of an operator with the command-line tool, as user@host; '': of all others
    action     text NOT NULL,                         -- such as key.create: the type of the target, and what was done
    target     text NOT NULL,                         -- its id; '': an erased recipient, or no target
    difference jsonb NOT NULL                         -- what has changed, by the names of members; no messages, addresses or secrets
) PARTITION BY RANGE (created_at);
CREATE INDEX audit_log_list ON audit_log (tenant_id, created_at, id);
CREATE INDEX audit_log_target ON audit_log (tenant_id, target, created_at, id);


-- Partitions ----------------------------------------------------------------------------------------------------------------------

-- The division of tables by time.
CREATE TABLE partitioning (
    parent  text PRIMARY KEY,
    step    interval NOT NULL,                        -- the length of each partition; steps are counted from a Monday
    options text NOT NULL                             -- the storage parameters of each
);
INSERT INTO partitioning VALUES
    ('pushes', '7 days', 'fillfactor = 75'),          -- room for the one change that most pushes have
    ('sends', '1 day', 'fillfactor = 100'),
    ('idempotency', '7 days', 'fillfactor = 100'),
    ('audit_log', '7 days', 'fillfactor = 100');

-- +goose StatementBegin
-- Gives a new table the owner and the privileges of another table.
CREATE FUNCTION share_privileges(source text, target text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    whole pg_class;
    may   record;
BEGIN
    SELECT * INTO whole FROM pg_class WHERE oid = quote_ident(source)::regclass;
    FOR may IN SELECT * FROM aclexplode(whole.relacl) a WHERE a.grantee <> whole.relowner LOOP
        EXECUTE format('GRANT %s ON %I TO %s', may.privilege_type, target, CASE may.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(may.grantee)) END);
    END LOOP;
    IF pg_get_userbyid(whole.relowner) <> current_user THEN
        EXECUTE format('ALTER TABLE %I OWNER TO %I', target, pg_get_userbyid(whole.relowner));
    END IF;
END $$;
-- +goose StatementEnd

-- The next function runs with the rights of its owner, because the programs' role may not make tables. Exclude temporary tables with the
-- names of its tables.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- +goose StatementBegin
-- Makes the missing partitions of a table for rows with a time from first to last, and returns their number. Each is named after its first
-- day, and has the owner and the privileges of the table. Users of the table do not wait: making a table first, and then attaching it,
-- needs no lock that excludes reads or writes. With two concurrent calls, the later one waits, and finds nothing left to do.
CREATE FUNCTION make_partitions(parent text, first timestamptz, last timestamptz) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
DECLARE
    how   partitioning;
    made  int := 0;
    since timestamptz;
    name  text;
BEGIN
    SELECT * INTO how FROM partitioning p WHERE p.parent = make_partitions.parent;
    IF how.parent IS NULL OR last < first THEN
        RETURN 0;
    END IF;
    since := date_bin(how.step, first, '2001-01-01');
    IF last > since + 4000 * how.step THEN
        RAISE 'partitions of % from % to % are too many to be made at once', parent, first, last USING ERRCODE = 'program_limit_exceeded';
    END IF;
    FOR since IN SELECT generate_series(since, last, how.step) LOOP
        name := parent || to_char(since, '_YYYYMMDD');
        CONTINUE WHEN to_regclass(quote_ident(name)) IS NOT NULL;
        EXECUTE format('LOCK TABLE %I IN SHARE UPDATE EXCLUSIVE MODE', parent);
        CONTINUE WHEN to_regclass(quote_ident(name)) IS NOT NULL; -- another call has made it
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE) WITH (%s)', name, parent, how.options);
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, name, since, since + how.step);
        PERFORM share_privileges(parent, name);
        made := made + 1;
    END LOOP;
    RETURN made;
END $$;
-- +goose StatementEnd

-- The partitions of the first days. Programs make all others, ahead of time or when they need one.
SELECT make_partitions(parent, now(), now() + step) FROM partitioning;


-- Events of pushes ----------------------------------------------------------------------------------------------------------------

-- +goose StatementBegin
-- Formats a time like the API.
CREATE FUNCTION utc(t timestamptz) RETURNS text LANGUAGE sql STABLE
AS $$ SELECT (to_json(t AT TIME ZONE 'UTC') #>> '{}') || 'Z' $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Returns an event with a push as the API shows it, without its message and its address. Statements that change pushes write it into
-- webhook_deliveries.
CREATE FUNCTION push_event(event text, p pushes) RETURNS json LANGUAGE sql STABLE
AS $$ SELECT json_build_object('type', event, 'timestamp', utc(p.updated_at), 'data', json_build_object(
    'id', p.id, 'status', p.status, 'recipient', p.recipient, 'channel', p.channel, 'category', p.category,
    'level', (ARRAY['urgent', 'normal', 'bulk'])[p.level + 1],
    'send_at', utc(p.send_at), 'requested_send_at', utc(p.requested_send_at), 'deferred', p.send_at > p.requested_send_at,
    'next_attempt_at', CASE WHEN p.status = 'scheduled' AND p.next_at <> p.send_at THEN utc(p.next_at) END,
    'expires_at', utc(p.expires_at), 'attempts', p.attempts, 'last_error', p.last_error,
    'possibly_delivered', p.possibly_delivered OR p.retry_doubt IS TRUE, 'metadata', p.metadata, 'campaign', p.campaign_id,
    'retry_of', p.retry_of, 'request_id', p.request_id, 'created_at', utc(p.created_at), 'updated_at', utc(p.updated_at))) $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION push_event(text, pushes), utc(timestamptz), make_partitions(text, timestamptz, timestamptz), share_privileges(text, text);
DROP TABLE partitioning, audit_log, audit_findings, audits, audited, audit_pass, unhealthy_channels, channel_outcomes, channel_views, lanes, recounts, ahead, stats, stat_deltas,
    bulk_change_pushes, bulk_changes, schedule_runs, schedules, campaign_uploads, campaign_recipients, campaigns, webhook_deliveries, webhooks, tenant_channels, channel_changes,
    pauses, idempotency, sends, live, pushes, policy_shadows, policy_operations, policies, crowds, suppressions, recipients, sessions, users, api_keys, installation, tenants;
DROP FUNCTION address_list(jsonb);
