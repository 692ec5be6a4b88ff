-- +goose NO TRANSACTION
-- +goose Up

-- +goose StatementBegin
-- The keys of the last 30 days go into the table idempotency, those of some thousand pushes at a time. Those that are booked
-- meanwhile are there already, so the walk can also be begun again.
DO $$
DECLARE
    behind uuid := '00000000-0000-0000-0000-000000000000';
    upto   uuid;
BEGIN
    LOOP
        SELECT idempotency_id INTO upto FROM (
            SELECT idempotency_id FROM pushes WHERE idempotency_id IS NOT NULL AND idempotency_id > behind ORDER BY idempotency_id LIMIT 2000
        ) p ORDER BY idempotency_id DESC LIMIT 1;
        EXIT WHEN upto IS NULL;
        INSERT INTO idempotency
        SELECT idempotency_id, id, id, tenant_id, coalesce(idempotency_hash, ''), send_at, created_at
        FROM (
            SELECT * FROM pushes
            WHERE idempotency_id > behind AND idempotency_id <= upto AND created_at > now() - interval '30 days'
            ORDER BY id FOR SHARE
        ) p
        WHERE NOT EXISTS (SELECT FROM idempotency i WHERE i.idempotency_id = p.idempotency_id AND i.push_id = p.id);
        COMMIT;
        behind := upto;
    END LOOP;
END $$;
-- +goose StatementEnd

ANALYZE idempotency;

-- +goose Down
SELECT;
