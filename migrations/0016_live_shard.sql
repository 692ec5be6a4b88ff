-- +goose Up

-- The shard of the recipient: recipient_key & 255. A database that is spread over servers finds the one of a row by it. Null:
-- an earlier version wrote the row, and the next migration fills it.
ALTER TABLE live ADD COLUMN shard smallint;

-- +goose StatementBegin
-- Programs of earlier versions know nothing of shards.
CREATE FUNCTION live_shard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.shard := NEW.recipient_key & 255;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER live_shard BEFORE INSERT ON live FOR EACH ROW WHEN (NEW.shard IS NULL) EXECUTE FUNCTION live_shard();

-- +goose Down
DROP TRIGGER live_shard ON live;
DROP FUNCTION live_shard();
ALTER TABLE live DROP COLUMN shard;
