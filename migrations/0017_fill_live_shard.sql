-- +goose NO TRANSACTION
-- +goose Up

-- +goose StatementBegin
-- Some thousand rows at a time. A claim waits for as long as a portion takes at most.
DO $$
DECLARE
    behind bigint;
    upto   bigint;
BEGIN
    LOOP
        SELECT max(recipient_key) INTO upto FROM (
            SELECT recipient_key FROM live WHERE behind IS NULL OR recipient_key > behind ORDER BY recipient_key LIMIT 2000
        ) l;
        EXIT WHEN upto IS NULL;
        LOOP
            BEGIN
                UPDATE live SET shard = live.recipient_key & 255
                FROM (
                    SELECT recipient_key, send_at, push_id FROM live
                    WHERE (behind IS NULL OR recipient_key > behind) AND recipient_key <= upto AND shard IS NULL ORDER BY push_id FOR UPDATE
                ) l
                WHERE live.recipient_key = l.recipient_key AND live.push_id = l.push_id; -- a move may have changed send_at since
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
