-- Chapter 26: what leaves the database: files of the archive, and erasures with their proof.
--
-- SQLSTATEs: DB004 an erasure that is on record is kept as it is.

-- +goose Up
-- +goose StatementBegin

-- The files of the archive. A file belongs to the archive from the transaction that inserts its
-- row, which is the one that removes the rows that the file holds. A file without a row was written
-- by a transaction that did not commit: what is in it is in the database.
CREATE TABLE daybook.archives (
    key         text COLLATE "C" PRIMARY KEY CHECK (octet_length(key) BETWEEN 1 AND 255),
    kind        text NOT NULL CHECK (kind IN ('jobs', 'attempts')),
    -- How many rows of each table are in it.
    counts      jsonb NOT NULL CHECK (jsonb_typeof(counts) = 'object'),
    lines       integer NOT NULL CHECK (lines > 0),
    bytes       bigint NOT NULL CHECK (bytes > 0),
    sha256      bytea NOT NULL CHECK (octet_length(sha256) = 32),
    org_ids     text[] COLLATE "C" NOT NULL,
    first_at    timestamptz NOT NULL,
    last_at     timestamptz NOT NULL,
    archived_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    restored_at timestamptz,
    erased_at   timestamptz
);
CREATE INDEX archives_org_ids ON daybook.archives USING gin (org_ids);
CREATE INDEX archives_archived_at ON daybook.archives (archived_at, key);
COMMENT ON TABLE daybook.archives IS
    'The files of the archive; a file that is not on record holds nothing that was removed';
COMMENT ON COLUMN daybook.archives.sha256 IS 'Of the file as it is stored';
COMMENT ON COLUMN daybook.archives.first_at IS 'When the first of what is in it ended, and last_at the last';
COMMENT ON COLUMN daybook.archives.restored_at IS 'When its rows were last brought back; null: never';
COMMENT ON COLUMN daybook.archives.erased_at IS
    'An erasure replaced the file: it is to be deleted, and its row with it';

-- Puts rows of a table back as they were: the columns that they have, also those that are otherwise
-- made by the database. Rows that are there already, or whose place is taken, are left out. Returns
-- the first column of the others.
CREATE FUNCTION daybook.restore_rows(_table regclass, _first text, _rows jsonb) RETURNS SETOF text
    LANGUAGE plpgsql
AS $$
DECLARE
    columns text;
BEGIN
    SELECT string_agg(quote_ident(c.attname), ', ' ORDER BY c.attnum) INTO columns
      FROM pg_catalog.pg_attribute c
     WHERE c.attrelid = _table AND c.attnum > 0 AND NOT c.attisdropped AND c.attgenerated = '' AND _rows -> 0 ? c.attname;
    IF columns IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format(
        'INSERT INTO %1$s (%2$s) OVERRIDING SYSTEM VALUE SELECT %2$s FROM jsonb_populate_recordset(NULL::%1$s, $1) ON CONFLICT DO NOTHING RETURNING %3$I::text',
        _table, columns, _first) USING _rows;
END
$$;
REVOKE ALL ON FUNCTION daybook.restore_rows FROM PUBLIC;

-- What was erased, for whom it has to be shown. The rows that an erasure removes and its counts
-- commit together.
CREATE TABLE daybook.erasures (
    id          text COLLATE "C" PRIMARY KEY DEFAULT daybook.new_id(),
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz,
    actor       text NOT NULL,
    db_role     text NOT NULL DEFAULT session_user,
    org_id      text COLLATE "C" NOT NULL CHECK (org_id <> ''),
    scope       text NOT NULL CHECK (scope IN ('organization', 'link')),
    link_kind   text,
    -- Who knows the link can tell that this erasure was about it; the link itself is not kept.
    scope_salt  bytea NOT NULL CHECK (octet_length(scope_salt) = 16),
    scope_hash  bytea NOT NULL CHECK (octet_length(scope_hash) = 32),
    ground      text NOT NULL DEFAULT '',
    counts      jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(counts) = 'object'),
    kept        jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(kept) = 'array'),
    open_jobs   integer NOT NULL DEFAULT 0,
    CHECK ((scope = 'link') = (link_kind IS NOT NULL))
);
CREATE INDEX erasures_org_id ON daybook.erasures (org_id, started_at DESC);
COMMENT ON TABLE daybook.erasures IS 'The proof of what was erased, and of what was kept and why';
COMMENT ON COLUMN daybook.erasures.finished_at IS 'Null: it runs, or ended before its end; erase again';
COMMENT ON COLUMN daybook.erasures.scope_hash IS
    'SHA-256 of the salt, the organization, and the kind and id of the link, each but the salt with its length in '
    'bytes and a colon before it';
COMMENT ON COLUMN daybook.erasures.ground IS 'What the operator gave as the reason';
COMMENT ON COLUMN daybook.erasures.counts IS 'How many rows, by table, and files were erased';
COMMENT ON COLUMN daybook.erasures.kept IS '[{"what", "count", "reason"}]: what was not erased';
COMMENT ON COLUMN daybook.erasures.open_jobs IS
    'Jobs that were being worked at its end: erase again when they have ended';

CREATE FUNCTION daybook.keep_erasure() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    IF OLD.finished_at IS NOT NULL OR (NEW.id, NEW.started_at, NEW.actor, NEW.db_role, NEW.org_id, NEW.scope, NEW.scope_salt, NEW.scope_hash)
                                      IS DISTINCT FROM (OLD.id, OLD.started_at, OLD.actor, OLD.db_role, OLD.org_id, OLD.scope, OLD.scope_salt, OLD.scope_hash) THEN
        RAISE EXCEPTION 'the erasure % is on record', OLD.id USING ERRCODE = 'DB004', HINT = 'erase again, which is an erasure of its own';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER erasures_stay BEFORE DELETE OR TRUNCATE ON daybook.erasures
    FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_removal();
CREATE TRIGGER erasures_keep BEFORE UPDATE ON daybook.erasures
    FOR EACH ROW EXECUTE FUNCTION daybook.keep_erasure();

-- The log of actions is append-only except for this: what an action was about may be replaced by
-- the mark of an erasure that runs.
CREATE FUNCTION daybook.refuse_change_of_action() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    IF NEW.subject = '' AND NEW.details - 'erased' = '{}'
       AND (NEW.id, NEW.at, NEW.via, NEW.action, NEW.token_id, NEW.actor, NEW.db_role, NEW.org_id, NEW.outcome, NEW.code)
           IS NOT DISTINCT FROM (OLD.id, OLD.at, OLD.via, OLD.action, OLD.token_id, OLD.actor, OLD.db_role, OLD.org_id, OLD.outcome, OLD.code)
       AND EXISTS (SELECT 1 FROM daybook.erasures e
                    WHERE e.id = NEW.details ->> 'erased' AND e.finished_at IS NULL AND (e.org_id = NEW.org_id OR NEW.org_id IS NULL)) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'daybook.actions is append-only: UPDATE refused' USING ERRCODE = 'DB004', HINT = 'write an action of its own';
END
$$;
CREATE TRIGGER actions_stay BEFORE UPDATE ON daybook.actions
    FOR EACH ROW EXECUTE FUNCTION daybook.refuse_change_of_action();

-- +goose StatementEnd

-- +goose Down
DROP TRIGGER actions_stay ON daybook.actions;
DROP FUNCTION daybook.refuse_change_of_action;
DROP TABLE daybook.erasures;
DROP FUNCTION daybook.keep_erasure, daybook.restore_rows;
DROP TABLE daybook.archives;
