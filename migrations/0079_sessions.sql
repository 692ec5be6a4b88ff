-- +goose Up

-- The browsers in which users are signed in.
CREATE TABLE sessions (
    token_hash   bytea PRIMARY KEY CHECK (length(token_hash) = 32), -- SHA-256 of the cookie, which is kept nowhere
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

-- +goose Down
DROP TABLE sessions;
