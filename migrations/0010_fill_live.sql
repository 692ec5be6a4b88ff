-- +goose NO TRANSACTION
-- +goose Up

-- +goose StatementBegin
-- What waits or is under way since before 0009 goes into live, some thousand pushes at a time. Those that are changed at
-- the same time are found as they are afterwards: their rows are locked for as long as a portion takes. What is in live
-- already, because it was booked later, stays as it is; so the walk can also be begun again.
DO $$
DECLARE
    behind uuid := '00000000-0000-0000-0000-000000000000';
    upto   uuid;
BEGIN
    LOOP
        SELECT id INTO upto FROM (SELECT id FROM pushes WHERE id > behind ORDER BY id LIMIT 2000) p ORDER BY id DESC LIMIT 1;
        EXIT WHEN upto IS NULL;
        LOOP
            BEGIN
                INSERT INTO live (recipient_key, send_at, next_at, expires_at, started_at, plan, attempts, phase, bulk, more_due, push_id, tenant_id, token, channel)
                SELECT p.recipient_key, p.send_at, coalesce(p.lease_until, p.next_at), p.expires_at, CASE WHEN p.status = 'sending' THEN coalesce(s.started_at, p.updated_at) END,
                    p.plan, p.attempts, CASE WHEN p.status = 'sending' THEN 2 ELSE p.bulk::int END, p.bulk, p.more_due, p.id, p.tenant_id, p.claim_token, p.channel
                FROM (SELECT * FROM pushes WHERE id > behind AND id <= upto AND status IN ('scheduled', 'sending') ORDER BY id FOR SHARE) p
                LEFT JOIN LATERAL (SELECT started_at FROM sends WHERE push_id = p.id AND attempt = p.attempts AND ended_at IS NULL) s ON true
                ON CONFLICT DO NOTHING;
                EXIT;
            EXCEPTION WHEN deadlock_detected THEN -- again: the other transaction goes on
            END;
        END LOOP;
        COMMIT;
        behind := upto;
    END LOOP;
END $$;
-- +goose StatementEnd

ANALYZE live;

-- +goose Down
SELECT;
