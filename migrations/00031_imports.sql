-- Chapter 31: imports: which documents each of them wrote, and how they are taken back.
--
-- SQLSTATEs: DB010 the request is invalid, DB015 there is no such import.

-- +goose Up
-- +goose StatementBegin

-- One row an import and organization, from its first document on.
CREATE TABLE daybook.imports (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id     text COLLATE "C" NOT NULL CHECK (org_id <> '' AND octet_length(org_id) <= 255),
    format     text NOT NULL CHECK (format ~ '^[a-z][a-z0-9_-]{0,99}$'),
    files      text NOT NULL DEFAULT '' CHECK (octet_length(files) <= 1000),
    actor      text NOT NULL,
    db_role    text NOT NULL DEFAULT session_user,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at   timestamptz,
    inserted   bigint NOT NULL DEFAULT 0,
    changed    bigint NOT NULL DEFAULT 0,
    unchanged  bigint NOT NULL DEFAULT 0,

    undo_started_at timestamptz,
    undo_ended_at   timestamptz,
    undo_actor      text,
    removed    bigint NOT NULL DEFAULT 0,
    reversed   bigint NOT NULL DEFAULT 0,
    restored   bigint NOT NULL DEFAULT 0,
    kept       bigint NOT NULL DEFAULT 0,
    CONSTRAINT undo_has_actor CHECK ((undo_started_at IS NULL) = (undo_actor IS NULL)),
    CONSTRAINT undo_ends_after_start CHECK (undo_ended_at IS NULL OR undo_started_at IS NOT NULL)
);
CREATE INDEX imports_org_id ON daybook.imports (org_id, id DESC);
COMMENT ON TABLE daybook.imports IS 'What was imported for an organization, by whom, and what of it was taken back';
COMMENT ON COLUMN daybook.imports.files IS 'The paths as they were given, shortened where they are long';
COMMENT ON COLUMN daybook.imports.actor IS 'The user of the operating system that ran the command, or the token''s name';
COMMENT ON COLUMN daybook.imports.ended_at IS 'Null: it runs, or was ended before its end; what it wrote stands, and can be undone';
COMMENT ON COLUMN daybook.imports.inserted IS 'How many documents it made; with changed and unchanged it is counted when it ends';
COMMENT ON COLUMN daybook.imports.undo_ended_at IS 'When the last undo that changed something came to its end; null: none did';
COMMENT ON COLUMN daybook.imports.kept IS 'How many documents that undo left as they are';

CREATE TABLE daybook.import_documents (
    import_id   bigint NOT NULL,
    document_id text COLLATE "C" NOT NULL,
    created     boolean NOT NULL,
    version     bigint NOT NULL DEFAULT 0,
    written_at  timestamptz,
    former      jsonb,
    undone      text CHECK (undone IN ('removed', 'reversed', 'restored')),
    PRIMARY KEY (import_id, document_id)
);
-- What an erasure looks for.
CREATE INDEX import_documents_former ON daybook.import_documents (document_id) WHERE former IS NOT NULL;
COMMENT ON TABLE daybook.import_documents IS 'The documents that an import created or changed';
COMMENT ON COLUMN daybook.import_documents.version IS 'The version that it wrote; of a document that was undone, the one that the undo wrote';
COMMENT ON COLUMN daybook.import_documents.written_at IS 'documents.updated_at as it wrote it: another one is of a later change';
COMMENT ON COLUMN daybook.import_documents.former IS 'What a document that it changed was before; null: it was created, restored, or what it was is not kept';

-- Whether a document is deleted, and an undo has deleted it: then an import may write it anew,
-- where one that a person has deleted stays deleted.
CREATE FUNCTION daybook.is_undone(document daybook.documents) RETURNS boolean
    LANGUAGE sql STABLE
AS $$
    SELECT document.deleted_at IS NOT NULL
       AND EXISTS (SELECT FROM daybook.import_documents m
                    WHERE m.import_id = document.import_id AND m.document_id = document.id AND m.undone = 'reversed'
                      AND m.version = document.accounting_ready_version)
$$;

-- Removes a document that was never posted, and its job, and says whether it did. It leaves one
-- alone of which the ledger has an impact, or of which an attempt may be about to make one. It runs
-- with the rights of the schema's owner, because no role may remove a document otherwise.
CREATE FUNCTION daybook.remove_unposted_document(org_id text, document_id text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _org      CONSTANT text := remove_unposted_document.org_id;
    _document CONSTANT text := remove_unposted_document.document_id;
    _state    daybook.job_state;
BEGIN
    PERFORM FROM daybook.documents d WHERE d.org_id = _org AND d.id = _document FOR UPDATE;
    -- A worker that posts the document in one transaction holds the job's row until it has
    -- committed, and the statements after this one see what it has posted.
    SELECT q.state INTO _state FROM daybook.accounting_work_queue q WHERE q.org_id = _org AND q.document_id = _document FOR UPDATE;
    IF _state = 'leased'
       OR EXISTS (SELECT FROM daybook.impacts i WHERE i.org_id = _org AND i.document_id = _document)
       OR EXISTS (SELECT FROM daybook.posted_elsewhere e WHERE e.org_id = _org AND e.document_id = _document) THEN
        RETURN false;
    END IF;
    DELETE FROM daybook.accounting_work_queue q WHERE q.org_id = _org AND q.document_id = _document;
    DELETE FROM daybook.documents d WHERE d.org_id = _org AND d.id = _document;
    RETURN true;
END
$$;
REVOKE ALL ON FUNCTION daybook.remove_unposted_document FROM PUBLIC;

-- Takes back the next documents of an import, in the order of their ids, at most so many, and says
-- what it did with each:
--
--   removed   the import made it, and nothing of it was posted: its row and its job are gone
--   reversed  the import made it: it is deleted as by mark_document_deleted, and a worker reverses
--             what is posted of it
--   restored  the import changed it: it is as it was before, in a new version
--   kept      it is left alone; code says why: DOCUMENT_NOT_FOUND, DOCUMENT_DELETED, CHANGED_SINCE
--             (other_import: by which import, if by one), FORMER_NOT_KEPT, or PERIOD_CLOSED
--
-- No row: all is done. Called again from the beginning, it goes on with what it has kept.
--
-- Locks: the import's row, the documents in their order, the configuration (shared), their jobs.
CREATE FUNCTION daybook.undo_import(
    import_id    bigint,
    after        text DEFAULT '',
    most         integer DEFAULT 500,
    actor        text DEFAULT session_user
) RETURNS TABLE (document_id text, result text, code text, other_import bigint)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    i      daybook.imports;
    m      daybook.import_documents;
    d      daybook.documents;
    last   daybook.impacts;
    state  daybook.job_state;
    ids    text[];
    policy daybook.closed_period_policy;
    v      bigint;
    counts integer[] := '{0,0,0}';
BEGIN
    IF after IS NULL OR most IS NULL OR most NOT BETWEEN 1 AND 10000 OR coalesce(actor, '') = '' THEN
        RAISE EXCEPTION 'after and actor must not be null, nor actor empty, and most must be between 1 and 10000' USING ERRCODE = 'DB010';
    END IF;
    SELECT * INTO i FROM daybook.imports x WHERE x.id = undo_import.import_id FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no import %', undo_import.import_id USING ERRCODE = 'DB015', HINT = 'list the imports: `daybook import list`';
    END IF;
    SELECT array_agg(x.document_id ORDER BY x.document_id) INTO ids
      FROM (SELECT y.document_id FROM daybook.import_documents y
             WHERE y.import_id = i.id AND y.document_id > after COLLATE "C" AND y.undone IS NULL
             ORDER BY y.document_id LIMIT most) x;
    PERFORM FROM unnest(ids) AS k (id) CROSS JOIN LATERAL (
                SELECT FROM daybook.documents x WHERE x.org_id = i.org_id AND x.id = k.id FOR UPDATE) locked;
    -- No period is closed between the look at it and the commit.
    PERFORM daybook.use_configuration(i.org_id);
    SELECT o.closed_period_policy INTO policy FROM daybook.organizations o WHERE o.id = i.org_id;

    FOREACH document_id IN ARRAY coalesce(ids, '{}') LOOP
        result := 'kept';
        code := NULL;
        other_import := NULL;
        SELECT * INTO m FROM daybook.import_documents x WHERE x.import_id = i.id AND x.document_id = undo_import.document_id;
        SELECT * INTO d FROM daybook.documents x WHERE x.org_id = i.org_id AND x.id = undo_import.document_id;
        -- Waits for the worker that posts it.
        SELECT q.state INTO state FROM daybook.accounting_work_queue q
         WHERE q.org_id = i.org_id AND q.document_id = undo_import.document_id FOR UPDATE;
        SELECT * INTO last FROM daybook.impacts x
         WHERE x.org_id = i.org_id AND x.document_id = undo_import.document_id ORDER BY x.seq DESC LIMIT 1;
        IF d.id IS NULL THEN
            code := 'DOCUMENT_NOT_FOUND';
        ELSIF d.deleted_at IS NOT NULL THEN
            code := 'DOCUMENT_DELETED';
        ELSIF d.import_id IS DISTINCT FROM i.id OR d.accounting_ready_version <> m.version OR d.updated_at IS DISTINCT FROM m.written_at THEN
            code := 'CHANGED_SINCE';
            other_import := nullif(d.import_id, i.id);
        ELSIF NOT m.created AND m.former IS NULL THEN
            code := 'FORMER_NOT_KEPT';
        -- What is posted of the version that the import wrote, or of a later one, would be reversed, and
        -- what was posted before would be posted again. A posting from before stays as it is, unless
        -- an attempt is about to replace it.
        ELSIF policy = 'fail' AND last.kind = 'post' AND (m.created OR last.document_version > (m.former ->> 'version')::bigint OR state = 'leased')
              AND EXISTS (SELECT FROM daybook.closed_spans(i.org_id) s
                            JOIN daybook.impacts x ON x.posting_date BETWEEN s.starts_on AND s.ends_on
                           WHERE x.org_id = i.org_id AND x.document_id = d.id
                             AND (x.seq = last.seq
                                  OR (m.former ->> 'ready')::boolean
                                     AND x.seq = (SELECT max(y.seq) FROM daybook.impacts y
                                                   WHERE y.org_id = i.org_id AND y.document_id = d.id AND y.kind = 'post'
                                                     AND y.document_version <= (m.former ->> 'version')::bigint))) THEN
            code := 'PERIOD_CLOSED';
        ELSIF NOT m.created THEN
            UPDATE daybook.documents x
               SET type = m.former ->> 'type', direction = m.former ->> 'direction', currency = m.former ->> 'currency',
                   issue_date = (m.former ->> 'issue_date')::date, value_date = (m.former ->> 'value_date')::date,
                   content = m.former -> 'content', import_id = (m.former ->> 'import_id')::bigint
             WHERE x.org_id = i.org_id AND x.id = d.id;
            IF (m.former ->> 'ready')::boolean THEN
                v := (SELECT x.version FROM daybook.mark_document_ready(i.org_id, d.id) x);
            ELSE
                v := (SELECT x.version FROM daybook.mark_document_not_ready(i.org_id, d.id) x);
            END IF;
            -- What the import before wrote is there again, so that it can be undone as well.
            UPDATE daybook.import_documents x
               SET version = v, written_at = (SELECT y.updated_at FROM daybook.documents y WHERE y.org_id = i.org_id AND y.id = d.id)
             WHERE x.import_id = (m.former ->> 'import_id')::bigint AND x.document_id = d.id AND x.version = (m.former ->> 'version')::bigint
               AND x.undone IS NULL;
            result := 'restored';
            counts[3] := counts[3] + 1;
        ELSIF daybook.remove_unposted_document(i.org_id, d.id) THEN
            v := m.version;
            result := 'removed';
            counts[1] := counts[1] + 1;
        ELSE
            v := (SELECT x.version FROM daybook.mark_document_deleted(i.org_id, d.id) x);
            result := 'reversed';
            counts[2] := counts[2] + 1;
        END IF;
        IF result <> 'kept' THEN
            UPDATE daybook.import_documents x SET undone = undo_import.result, version = v, former = NULL
             WHERE x.import_id = i.id AND x.document_id = undo_import.document_id;
        END IF;
        RETURN NEXT;
    END LOOP;

    UPDATE daybook.imports x
       SET undo_started_at = coalesce(x.undo_started_at, clock_timestamp()), undo_actor = coalesce(x.undo_actor, undo_import.actor),
           removed = x.removed + counts[1], reversed = x.reversed + counts[2], restored = x.restored + counts[3]
     WHERE x.id = i.id AND (x.undo_started_at IS NULL OR counts <> '{0,0,0}');
    IF coalesce(cardinality(ids), 0) < most THEN
        v := (SELECT count(*) FROM daybook.import_documents x WHERE x.import_id = i.id AND x.undone IS NULL);
        UPDATE daybook.imports x SET undo_ended_at = clock_timestamp(), kept = v
         WHERE x.id = i.id AND (x.undo_ended_at IS NULL OR x.kept <> v);
    END IF;
END
$$;
COMMENT ON FUNCTION daybook.undo_import IS
    'Takes back the next documents of an import. result: removed, reversed (by a worker), restored, or kept (code says why). Call it until it returns fewer than most';

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.undo_import, daybook.remove_unposted_document;
DROP FUNCTION daybook.is_undone;
DROP TABLE daybook.import_documents, daybook.imports;
