-- +goose NO TRANSACTION
-- contract: see 0030.
-- +goose Up

CALL copy_beside('pushes', 'id', 'send_at');
ANALYZE pushes_beside;

-- +goose Down
SELECT;
