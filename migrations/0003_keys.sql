-- +goose Up

ALTER TABLE api_keys
    ADD COLUMN lifetime     interval,    -- for how long it was made, which its rotation repeats; null: for ever
    ADD COLUMN last_used_at timestamptz, -- to about a minute
    ADD COLUMN revoked_at   timestamptz, -- from then on it is refused, whatever expires_at says
    ADD COLUMN successor    uuid REFERENCES api_keys; -- the key that its last rotation made
UPDATE api_keys SET lifetime = expires_at - created_at;
CREATE INDEX api_keys_tenant ON api_keys (tenant_id, created_at);

-- What the operator allows one tenant: 0 any number, null what holds for all.
ALTER TABLE tenants
    ADD COLUMN pending_cap    int CHECK (pending_cap >= 0),
    ADD COLUMN recipients_cap int CHECK (recipients_cap >= 0);

-- A tenant's pushes that are scheduled or being sent, to be counted. Key and
-- condition are written so that only the query which counts can use the index,
-- and that query no other.
CREATE INDEX pushes_pending ON pushes ((tenant_id::text)) WHERE '' || status IN ('scheduled', 'sending');

-- +goose Down
DROP INDEX pushes_pending;
ALTER TABLE tenants DROP COLUMN pending_cap, DROP COLUMN recipients_cap;
DROP INDEX api_keys_tenant;
ALTER TABLE api_keys DROP COLUMN lifetime, DROP COLUMN last_used_at, DROP COLUMN revoked_at, DROP COLUMN successor;
