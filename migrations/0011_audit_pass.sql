-- +goose Up

-- How far the workers' audit is: one row. One worker at a time owns it.
CREATE TABLE audit_pass (
    one         bool PRIMARY KEY DEFAULT true CHECK (one),
    owner       uuid,
    owned_until timestamptz NOT NULL DEFAULT '-infinity',
    state       jsonb, -- of the pass that is going on: where it is, and what it found
    last        jsonb  -- the same of the pass that ended last
) WITH (fillfactor = 50);
INSERT INTO audit_pass DEFAULT VALUES;

-- The hours of send times that the workers' audit has read. A closed one is not read again.
CREATE TABLE audited (
    slice      timestamptz PRIMARY KEY, -- when the hour began
    closed     bool NOT NULL,           -- nothing in it can change any more, and it was found clean
    looked_at  timestamptz NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT '-infinity' -- when an attempt that began in it was changed long after its end
);

-- +goose Down
DROP TABLE audited, audit_pass;
