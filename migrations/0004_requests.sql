-- +goose Up

-- The X-Request-Id of the request that submitted the push: it leads from the worker's log to the API's. Empty: not known.
ALTER TABLE pushes ADD COLUMN request_id text NOT NULL DEFAULT '';

-- +goose StatementBegin
-- A push as the API shows it, without what it says and to which address.
CREATE OR REPLACE FUNCTION push_event(event text, p pushes) RETURNS json LANGUAGE sql STABLE
AS $$ SELECT json_build_object('type', event, 'timestamp', utc(p.updated_at), 'data', json_build_object(
    'id', p.id, 'status', p.status, 'recipient', p.recipient, 'channel', p.channel, 'category', p.category,
    'send_at', utc(p.send_at), 'requested_send_at', utc(p.requested_send_at), 'deferred', p.send_at > p.requested_send_at,
    'next_attempt_at', CASE WHEN p.status = 'scheduled' AND p.next_at <> p.send_at THEN utc(p.next_at) END,
    'expires_at', utc(p.expires_at), 'attempts', p.attempts, 'last_error', p.last_error,
    'possibly_delivered', p.possibly_delivered, 'metadata', p.metadata, 'request_id', p.request_id,
    'created_at', utc(p.created_at), 'updated_at', utc(p.updated_at))) $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION push_event(event text, p pushes) RETURNS json LANGUAGE sql STABLE
AS $$ SELECT json_build_object('type', event, 'timestamp', utc(p.updated_at), 'data', json_build_object(
    'id', p.id, 'status', p.status, 'recipient', p.recipient, 'channel', p.channel, 'category', p.category,
    'send_at', utc(p.send_at), 'requested_send_at', utc(p.requested_send_at), 'deferred', p.send_at > p.requested_send_at,
    'next_attempt_at', CASE WHEN p.status = 'scheduled' AND p.next_at <> p.send_at THEN utc(p.next_at) END,
    'expires_at', utc(p.expires_at), 'attempts', p.attempts, 'last_error', p.last_error,
    'possibly_delivered', p.possibly_delivered, 'metadata', p.metadata,
    'created_at', utc(p.created_at), 'updated_at', utc(p.updated_at))) $$;
-- +goose StatementEnd
ALTER TABLE pushes DROP COLUMN request_id;
