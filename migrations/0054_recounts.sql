-- +goose Up

-- When what waits of a tenant was last counted push by push, for the table ahead. A tenant without a row is counted next.
CREATE TABLE recounts (
    tenant_id uuid PRIMARY KEY REFERENCES tenants,
    at        timestamptz NOT NULL
);

-- +goose Down
DROP TABLE recounts;
