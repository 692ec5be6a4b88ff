-- +goose Up

-- Its tenant has many pushes for the same second: those of others come first.
ALTER TABLE pushes ADD COLUMN bulk bool NOT NULL DEFAULT false;

-- Which worker looks after which recipients. A lane is a range of the 256 shards; the row of its first one stands for it.
CREATE TABLE lanes (
    shard       smallint PRIMARY KEY CHECK (shard BETWEEN 0 AND 255),
    owner       uuid,
    owned_until timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);
INSERT INTO lanes (shard) SELECT generate_series(0, 255);

-- +goose Down
DROP TABLE lanes;
ALTER TABLE pushes DROP COLUMN bulk;
