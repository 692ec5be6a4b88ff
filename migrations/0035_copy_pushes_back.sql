-- +goose NO TRANSACTION
-- contract: see 0030.
-- +goose Up

-- The plain tables have everything. On the way back they are new, and are filled.
SELECT;

-- +goose Down
CALL copy_beside('pushes', 'id', 'send_at');
ANALYZE pushes_beside;
