-- +goose Up
-- contract: the release before reads and writes columns that this drops.

LOCK TABLE pushes, live; -- in the order in which most statements lock them

-- What the two releases told each other by is not needed any more. The functions stay for the way back.
DROP TRIGGER newer_claimed ON live;
DROP TRIGGER newer_waits ON live;
DROP TRIGGER newer_ended ON live;
DROP TRIGGER older_booked ON pushes;
DROP TRIGGER pushes_changed ON pushes;

-- +goose StatementBegin
-- Attempts that are under way are in live alone. The attempts of a push are those that have ended. The few that are under
-- way are found by the index sends_open.
DO $$ BEGIN
    WITH open AS (
        DELETE FROM sends s USING pushes p WHERE s.ended_at IS NULL AND p.id = s.push_id AND p.status = 'sending' RETURNING p.id
    )
    UPDATE pushes p SET status = 'scheduled', attempts = p.attempts - 1, claim_token = NULL, lease_until = NULL FROM open WHERE p.id = open.id;
END $$;
-- +goose StatementEnd

ALTER TABLE pushes
    DROP COLUMN gen,
    DROP COLUMN claim_token, -- with the constraints that name it
    DROP COLUMN lease_until,
    DROP COLUMN more_due,
    DROP COLUMN armed_until,
    DROP COLUMN bulk, -- with the index pushes_lane
    ALTER COLUMN status DROP DEFAULT,
    SET (fillfactor = 75);

-- +goose Down
LOCK TABLE pushes, live;
ALTER TABLE pushes
    ADD COLUMN gen bigint NOT NULL DEFAULT 1,
    ADD COLUMN claim_token uuid,
    ADD COLUMN more_due bool NOT NULL DEFAULT false,
    ADD COLUMN lease_until timestamptz,
    ADD COLUMN armed_until timestamptz,
    ADD COLUMN bulk bool NOT NULL DEFAULT false,
    ALTER COLUMN status SET DEFAULT 'scheduled',
    SET (fillfactor = 85);
CREATE INDEX pushes_lane ON pushes (channel, bulk, next_at, (recipient_key & 255), recipient_key) WHERE status || '.' = 'scheduled.';
UPDATE pushes SET status = 'sending', attempts = live.attempts, claim_token = live.token, lease_until = live.next_at, more_due = live.more_due,
    updated_at = live.started_at
FROM live WHERE live.phase = 2 AND pushes.id = live.push_id;
INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, started_at, lease_until)
SELECT p.id, p.attempts, p.tenant_id, p.recipient_key, p.recipient, p.channel, p.updated_at, p.lease_until
FROM pushes p JOIN live ON live.phase = 2 AND p.id = live.push_id;
ALTER TABLE pushes
    ADD CHECK ((status = 'sending') = (claim_token IS NOT NULL)),
    ADD CHECK ((status = 'sending') = (lease_until IS NOT NULL));
CREATE TRIGGER older_booked AFTER INSERT ON pushes FOR EACH ROW WHEN (NEW.plan = 0) EXECUTE FUNCTION older_booked();
CREATE TRIGGER pushes_changed BEFORE UPDATE ON pushes FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION pushes_changed();
CREATE TRIGGER newer_claimed AFTER UPDATE ON live FOR EACH ROW
    WHEN (pg_trigger_depth() = 0 AND NEW.token IS NOT NULL AND (OLD.token IS NULL OR OLD.more_due <> NEW.more_due)) EXECUTE FUNCTION newer_claimed();
CREATE TRIGGER newer_waits BEFORE UPDATE ON live FOR EACH ROW
    WHEN (pg_trigger_depth() = 0 AND OLD.token IS NOT NULL AND NEW.token IS NULL) EXECUTE FUNCTION newer_finished();
CREATE TRIGGER newer_ended BEFORE DELETE ON live FOR EACH ROW
    WHEN (pg_trigger_depth() = 0 AND OLD.token IS NOT NULL) EXECUTE FUNCTION newer_finished();
