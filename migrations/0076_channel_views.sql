-- +goose Up

-- What each worker sees of each channel: written by it every few seconds and when it changes, and never for a push. A row
-- that was not written for a while is of a worker that is gone.
CREATE TABLE channel_views (
    worker  uuid NOT NULL,
    channel text NOT NULL,
    state   text NOT NULL CHECK (state IN ('working', 'trying', 'paused', 'failing')),
    held_until timestamptz, -- when the pause of a channel that is paused or failing ends
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (worker, channel)
) WITH (fillfactor = 50);

-- +goose Down
DROP TABLE channel_views;
