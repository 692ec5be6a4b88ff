-- +goose Up

-- Who signs in to the console.
CREATE TABLE users (
    id              uuid PRIMARY KEY,
    tenant_id       uuid NOT NULL REFERENCES tenants,
    email           text NOT NULL CHECK (email = lower(email)), -- the sign-in name
    name            text NOT NULL DEFAULT '',
    role            text NOT NULL CHECK (role IN ('viewer', 'editor', 'sender', 'admin')),
    password_hash   text,                                       -- argon2id, as a PHC string
    issuer          text,                                       -- of the OIDC provider that knows the user as subject
    subject         text,
    link_hash       bytea UNIQUE CHECK (length(link_hash) = 32), -- SHA-256 of the token of a link, which is kept nowhere
    link_expires_at timestamptz,
    disabled_at     timestamptz,
    last_sign_in_at timestamptz,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (tenant_id, email),
    UNIQUE (tenant_id, issuer, subject),
    CHECK ((issuer IS NULL) = (subject IS NULL)),
    CHECK ((link_hash IS NULL) = (link_expires_at IS NULL))
);
-- A tenant's list.
CREATE INDEX users_tenant ON users (tenant_id, created_at, id);
-- Signing in without saying of which tenant.
CREATE INDEX users_email ON users (email);

-- +goose Down
DROP TABLE users;
