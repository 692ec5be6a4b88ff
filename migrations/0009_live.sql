-- +goose Up

-- What waits or is under way: one row for each push that has not ended. Workers look for what is due here, claim here, and
-- remove the row when the push ends. It is narrow, and no message is written anew for that. Whoever changes a push locks
-- its row here first, and its row in pushes then.
CREATE TABLE live (
    recipient_key bigint NOT NULL,
    send_at       timestamptz NOT NULL,
    next_at       timestamptz NOT NULL,  -- when to try next, or, while it is under way, to take the attempt for lost
    expires_at    timestamptz NOT NULL,
    started_at    timestamptz,           -- of the attempt under way
    plan          bigint NOT NULL,       -- that of pushes
    attempts      int NOT NULL DEFAULT 0, -- with the one under way
    phase         smallint NOT NULL,     -- 0: it waits; 1: it waits, and is bulk; 2: it is under way
    bulk          bool NOT NULL,         -- its tenant has many pushes for the same second: those of others come first
    more_due      bool NOT NULL DEFAULT false, -- another push of the recipient waits for this attempt to end
    push_id       uuid NOT NULL,
    tenant_id     uuid NOT NULL,
    token         uuid,                  -- names the attempt under way
    channel       text NOT NULL,
    PRIMARY KEY (recipient_key, send_at, push_id),
    CHECK ((phase = 2) = (token IS NOT NULL AND started_at IS NOT NULL))
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.5,
    autovacuum_analyze_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- What is due, or will be, in a lane of shards, and whose lease ends when. The recipient key is written in another way than
-- in the primary key: so no statement can take this index for the way to one recipient, whatever the statistics say.
CREATE INDEX live_lane ON live (channel, phase, next_at, (recipient_key & 255), (recipient_key >> 8));
-- A tenant's pushes that have not ended, to be counted.
CREATE INDEX live_tenant ON live (tenant_id);

ALTER TABLE pushes
    ADD COLUMN plan bigint NOT NULL DEFAULT 0, -- changes with everything but a claim; 0: the release before wrote the row
    ADD COLUMN freed bool NOT NULL DEFAULT false; -- it gave its place in the quota back

-- While programs of the release before are at work, each of the two releases reads and writes its own form: the older one
-- the columns gen, claim_token, lease_until and more_due of pushes, with a row in sends for the attempt under way; the newer
-- one the table live, with the column plan of pushes. The triggers write what a statement changes into the other form as
-- well, in its transaction. So both forms always say the same, and what two programs want of one push is settled by the lock
-- of its row. A statement that changes plan is of the newer release. The functions may do more than the programs' role, which may
-- not know of the other form yet.

-- +goose StatementBegin
CREATE FUNCTION older_booked() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.status = 'scheduled' THEN
        INSERT INTO live (recipient_key, send_at, next_at, expires_at, plan, attempts, phase, bulk, push_id, tenant_id, channel)
        VALUES (NEW.recipient_key, NEW.send_at, NEW.next_at, NEW.expires_at, NEW.plan, NEW.attempts, NEW.bulk::int, NEW.bulk, NEW.id, NEW.tenant_id, NEW.channel);
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- A push that is not in live yet is put there by the next migration, which then finds the row as it is written here.
CREATE FUNCTION pushes_changed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.plan <> OLD.plan THEN
        NEW.gen := OLD.gen + 1;
        IF NEW.status <> 'sending' THEN
            NEW.claim_token := NULL;
            NEW.lease_until := NULL;
        END IF;
        RETURN NEW;
    END IF;
    IF (NEW.gen, NEW.status, NEW.claim_token, NEW.more_due) IS NOT DISTINCT FROM (OLD.gen, OLD.status, OLD.claim_token, OLD.more_due) THEN
        RETURN NEW;
    END IF;
    IF NEW.gen <> OLD.gen THEN
        NEW.plan := OLD.plan + 1;
    END IF;
    NEW.freed := NEW.status IN ('failed', 'canceled', 'expired');
    IF NEW.status IN ('scheduled', 'sending') THEN
        UPDATE live SET send_at = NEW.send_at, next_at = coalesce(NEW.lease_until, NEW.next_at), expires_at = NEW.expires_at, plan = NEW.plan,
            attempts = NEW.attempts, bulk = NEW.bulk, phase = CASE WHEN NEW.status = 'sending' THEN 2 ELSE NEW.bulk::int END,
            token = NEW.claim_token, more_due = NEW.more_due,
            started_at = CASE WHEN NEW.claim_token = token THEN started_at WHEN NEW.status = 'sending' THEN NEW.updated_at END
        WHERE recipient_key = OLD.recipient_key AND send_at = OLD.send_at AND push_id = OLD.id;
    ELSE
        DELETE FROM live WHERE recipient_key = OLD.recipient_key AND send_at = OLD.send_at AND push_id = OLD.id;
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION newer_claimed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE pushes SET status = 'sending', claim_token = NEW.token, lease_until = NEW.next_at, attempts = NEW.attempts, more_due = NEW.more_due,
        updated_at = NEW.started_at
    WHERE id = NEW.push_id;
    IF OLD.token IS NULL THEN
        INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, started_at, lease_until)
        SELECT id, NEW.attempts, tenant_id, recipient_key, recipient, channel, NEW.started_at, NEW.next_at FROM pushes WHERE id = NEW.push_id;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- The statement inserts the attempt with its end.
CREATE FUNCTION newer_finished() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM sends WHERE push_id = OLD.push_id AND attempt = OLD.attempts AND ended_at IS NULL;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
-- +goose StatementEnd

CREATE TRIGGER older_booked AFTER INSERT ON pushes FOR EACH ROW WHEN (NEW.plan = 0) EXECUTE FUNCTION older_booked();
CREATE TRIGGER pushes_changed BEFORE UPDATE ON pushes FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION pushes_changed();
CREATE TRIGGER newer_claimed AFTER UPDATE ON live FOR EACH ROW
    WHEN (pg_trigger_depth() = 0 AND NEW.token IS NOT NULL AND (OLD.token IS NULL OR OLD.more_due <> NEW.more_due)) EXECUTE FUNCTION newer_claimed();
CREATE TRIGGER newer_waits BEFORE UPDATE ON live FOR EACH ROW
    WHEN (pg_trigger_depth() = 0 AND OLD.token IS NOT NULL AND NEW.token IS NULL) EXECUTE FUNCTION newer_finished();
CREATE TRIGGER newer_ended BEFORE DELETE ON live FOR EACH ROW
    WHEN (pg_trigger_depth() = 0 AND OLD.token IS NOT NULL) EXECUTE FUNCTION newer_finished();

-- +goose Down
DROP TRIGGER older_booked ON pushes;
DROP TRIGGER pushes_changed ON pushes;
DROP TABLE live;
DROP FUNCTION older_booked(), pushes_changed(), newer_claimed(), newer_finished();
ALTER TABLE pushes DROP COLUMN plan, DROP COLUMN freed;
