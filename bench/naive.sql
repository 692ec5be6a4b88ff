-- The columns and indexes that the naive system needs, and nothing else.
DROP SCHEMA public CASCADE;
CREATE SCHEMA public;
CREATE TABLE pushes (
	id         uuid PRIMARY KEY,
	recipient  text NOT NULL,
	channel    text NOT NULL,
	category   text NOT NULL,
	message    json NOT NULL,
	send_at    timestamptz NOT NULL,
	status     text NOT NULL DEFAULT 'scheduled',
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX pushes_recipient ON pushes (recipient, send_at);
CREATE TABLE sends (
	push_id             uuid NOT NULL,
	attempt             int NOT NULL,
	recipient           text NOT NULL,
	started_at          timestamptz NOT NULL,
	ended_at            timestamptz NOT NULL,
	outcome             text NOT NULL,
	provider_message_id text NOT NULL,
	PRIMARY KEY (push_id, attempt)
);
CREATE INDEX sends_recipient ON sends (recipient, started_at);
