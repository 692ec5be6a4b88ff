-- +goose Up
-- contract: rows of the release before have no shard.

DROP TRIGGER live_shard ON live;
ALTER TABLE live ADD CONSTRAINT live_shard CHECK (shard IS NOT NULL AND shard = recipient_key & 255) NOT VALID;

-- +goose Down
ALTER TABLE live DROP CONSTRAINT live_shard;
CREATE TRIGGER live_shard BEFORE INSERT ON live FOR EACH ROW WHEN (NEW.shard IS NULL) EXECUTE FUNCTION live_shard();
