-- +goose Up

-- The passes of the workers' audit that have ended, and what they found of each tenant. What found nothing has no row.
CREATE TABLE audits (
    began_at timestamptz PRIMARY KEY,
    ended_at timestamptz NOT NULL,
    complete bool NOT NULL -- the findings of all tenants were kept
);
CREATE TABLE audit_findings (
    tenant_id  uuid NOT NULL,
    began_at   timestamptz NOT NULL, -- of the audit
    check_name text NOT NULL,
    violations int NOT NULL,
    pushes     uuid[] NOT NULL, -- of the first ten
    PRIMARY KEY (tenant_id, began_at, check_name)
);
CREATE INDEX audit_findings_began ON audit_findings (began_at);

-- +goose Down
DROP TABLE audits, audit_findings;
