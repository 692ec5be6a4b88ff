-- +goose Up
-- contract: see 0030.

-- What is done to the plain tables is done to those beside them from here on, in the same transaction.
LOCK TABLE pushes, sends IN SHARE ROW EXCLUSIVE MODE; -- in the order in which most statements lock them
CREATE TRIGGER follow AFTER INSERT OR UPDATE OR DELETE ON pushes FOR EACH ROW EXECUTE FUNCTION follow_pushes();
CREATE TRIGGER follow AFTER INSERT OR UPDATE OR DELETE ON sends FOR EACH ROW EXECUTE FUNCTION follow_sends();

-- +goose Down
LOCK TABLE pushes, sends;
DROP TRIGGER follow ON pushes;
DROP TRIGGER follow ON sends;
