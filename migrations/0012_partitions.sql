-- +goose Up

-- How tables are divided by time. A table that is named here, but is not a partitioned one yet, stays whole.
CREATE TABLE partitioning (
    parent  text PRIMARY KEY,
    step    interval NOT NULL, -- how long each partition is; steps are counted from a Monday, in UTC
    options text NOT NULL      -- the storage parameters of each
);
INSERT INTO partitioning VALUES ('pushes', '7 days', 'fillfactor = 75'), ('sends', '1 day', 'fillfactor = 100');

-- The function does what the programs' role may not do itself. No temporary table may stand for one of those that it names.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- +goose StatementBegin
-- Gives a new table the owner of another one, and the privileges that others have on that.
CREATE FUNCTION share_privileges(source text, target text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    whole pg_class;
    may   record;
BEGIN
    SELECT * INTO whole FROM pg_class WHERE oid = quote_ident(source)::regclass;
    FOR may IN SELECT * FROM aclexplode(whole.relacl) a WHERE a.grantee <> whole.relowner LOOP
        EXECUTE format('GRANT %s ON %I TO %s', may.privilege_type, target, CASE may.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(may.grantee)) END);
    END LOOP;
    IF whole.relowner <> current_user::regrole THEN
        EXECUTE format('ALTER TABLE %I OWNER TO %I', target, pg_get_userbyid(whole.relowner));
    END IF;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Makes the partitions of a table that lack for rows with a time from one to another, and says how many. Each is named after
-- its first day, and has the owner of the table and the privileges that others have on it. Whoever uses the table does not
-- wait: a table that is made first and attached then needs no lock that excludes reads or writes. Of two that call it at
-- once, the later one waits, and finds nothing left to do.
CREATE FUNCTION make_partitions(parent text, first timestamptz, last timestamptz) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
DECLARE
    how   partitioning;
    made  int := 0;
    since timestamptz;
    name  text;
BEGIN
    SELECT * INTO how FROM partitioning p WHERE p.parent = make_partitions.parent;
    IF NOT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass(quote_ident(how.parent)) AND relkind = 'p') OR last < first THEN
        RETURN 0;
    END IF;
    since := date_bin(how.step, first, '2001-01-01');
    IF last > since + 4000 * how.step THEN
        RAISE 'partitions of % from % to % are too many to be made at once', parent, first, last USING ERRCODE = 'program_limit_exceeded';
    END IF;
    FOR since IN SELECT generate_series(since, last, how.step) LOOP
        name := parent || to_char(since, '_YYYYMMDD');
        CONTINUE WHEN to_regclass(quote_ident(name)) IS NOT NULL;
        EXECUTE format('LOCK TABLE %I IN SHARE UPDATE EXCLUSIVE MODE', parent);
        CONTINUE WHEN to_regclass(quote_ident(name)) IS NOT NULL; -- another one has made it
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE) WITH (%s)', name, parent, how.options);
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, name, since, since + how.step);
        PERFORM share_privileges(parent, name);
        made := made + 1;
    END LOOP;
    RETURN made;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION make_partitions(text, timestamptz, timestamptz), share_privileges(text, text);
DROP TABLE partitioning;
