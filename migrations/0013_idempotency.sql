-- +goose Up

-- What requests with an Idempotency-Key have made: a row for each push. It outlives the push, so that a repetition is answered,
-- and nothing is booked twice. Partitions are by week: 30 days lie in six of them.
CREATE TABLE idempotency (
    idempotency_id uuid NOT NULL,        -- stands for the tenant's Idempotency-Key
    member         uuid NOT NULL,        -- stands for the key and the number of the push in the request; the release before takes it as the push's id
    push_id        uuid NOT NULL,
    tenant_id      uuid NOT NULL,
    hash           bytea NOT NULL,       -- SHA-256 of the request
    send_at        timestamptz NOT NULL, -- for which the push was booked first
    created_at     timestamptz NOT NULL
) PARTITION BY RANGE (created_at);

-- One key's rows. That there is one for each push is decided under the lock of the key.
CREATE INDEX idempotency_key ON idempotency (idempotency_id);

INSERT INTO partitioning VALUES ('idempotency', '7 days', 'fillfactor = 100');
SELECT share_privileges('pushes', 'idempotency');
SELECT make_partitions('idempotency', now() - interval '30 days', now() + interval '35 days');

-- The function does what the role of older programs may not do. No temporary table may stand for one of those that it names.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- +goose StatementBegin
-- A program of the release before books under a key. It does not find a push of that request which a program of this release has
-- booked, because that has another id: then it may not book it again. Its caller gets an error, and repeats the request.
CREATE FUNCTION older_keyed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT FROM idempotency WHERE idempotency_id = NEW.idempotency_id AND member = NEW.id AND created_at > now() - interval '30 days') THEN
        RAISE 'a newer program has booked this request' USING ERRCODE = 'unique_violation';
    END IF;
    INSERT INTO idempotency VALUES (NEW.idempotency_id, NEW.id, NEW.id, NEW.tenant_id, coalesce(NEW.idempotency_hash, ''), NEW.send_at, NEW.created_at);
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER older_keyed AFTER INSERT ON pushes FOR EACH ROW WHEN (NEW.plan = 0 AND NEW.idempotency_id IS NOT NULL) EXECUTE FUNCTION older_keyed();

-- +goose Down
DROP TRIGGER older_keyed ON pushes;
DROP FUNCTION older_keyed();
DROP TABLE idempotency;
DELETE FROM partitioning WHERE parent = 'idempotency';
