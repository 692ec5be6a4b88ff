-- +goose Up
-- contract: the release before finds by the columns of pushes what a key has made.

DROP TRIGGER older_keyed ON pushes; -- the function stays for the way back

-- +goose Down
CREATE TRIGGER older_keyed AFTER INSERT ON pushes FOR EACH ROW WHEN (NEW.plan = 0 AND NEW.idempotency_id IS NOT NULL) EXECUTE FUNCTION older_keyed();
