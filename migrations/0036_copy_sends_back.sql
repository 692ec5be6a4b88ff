-- +goose NO TRANSACTION
-- contract: see 0030.
-- +goose Up
SELECT;

-- +goose Down
CALL copy_beside('sends', 'push_id', 'started_at');
ANALYZE sends_beside;
