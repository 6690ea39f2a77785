-- Chapter 20: which types of jobs there are, who owns each, and what its handler's policy says.
-- Workers write it; lists, logs, metrics and reports read it.

-- +goose Up
-- +goose StatementBegin

CREATE TABLE daybook.job_types (
    kind            text COLLATE "C" NOT NULL CHECK (kind IN ('accounting', 'jobs', 'tasks')),
    -- The kind accounting has one type, which is empty.
    type            text COLLATE "C" NOT NULL,
    alias_of        text COLLATE "C" NOT NULL DEFAULT '',
    owner           text NOT NULL DEFAULT '',
    max_attempts    integer NOT NULL DEFAULT 0 CHECK (max_attempts >= 0),
    timeout_seconds double precision NOT NULL DEFAULT 0 CHECK (timeout_seconds >= 0),
    parallel        integer NOT NULL DEFAULT 0 CHECK (parallel >= 0),
    bulk            boolean NOT NULL DEFAULT false,
    secrets         text[] NOT NULL DEFAULT '{}',
    encrypts        boolean NOT NULL DEFAULT false,
    worker          text NOT NULL,
    first_seen      timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (kind, type),
    CHECK ((kind = 'accounting') = (type = ''))
) WITH (fillfactor = 70, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);
COMMENT ON TABLE daybook.job_types IS
    'Types that workers have handlers for: each worker writes its own every minute; what no worker has written for '
    '90 days is removed';
COMMENT ON COLUMN daybook.job_types.type IS 'As jobs are enqueued; empty for the kind accounting';
COMMENT ON COLUMN daybook.job_types.alias_of IS
    'The type whose handler works it, if this is another name of it; else empty';
COMMENT ON COLUMN daybook.job_types.owner IS 'The team or contact responsible; empty: no worker has said';
COMMENT ON COLUMN daybook.job_types.max_attempts IS
    'How many attempts a job has that says nothing else; 0: that is the kind''s rule';
COMMENT ON COLUMN daybook.job_types.parallel IS
    'How many a worker works side by side, or how many share a call of a bulk handler';
COMMENT ON COLUMN daybook.job_types.secrets IS 'Members of payloads and results that are not shown to people';
COMMENT ON COLUMN daybook.job_types.encrypts IS
    'Its payloads have members that are encrypted: workers by SQL, which cannot decrypt, leave its jobs to those in Go';
COMMENT ON COLUMN daybook.job_types.worker IS 'The worker that wrote the row last';

-- Puts types of a kind on record; the arrays have one element a type, which of _secrets is names
-- with newlines between them. An owner that is empty leaves the one on record, _secrets and _encrypts
-- do that are null.
CREATE FUNCTION daybook.note_job_types(_kind text, _worker text, _types text[], _aliases text[], _owners text[],
    _attempts integer[], _timeouts double precision[],
                                       _parallel integer[], _bulk boolean[], _secrets text[] DEFAULT NULL,
                                       _encrypts boolean[] DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO daybook.job_types AS t (kind, type, alias_of, owner, max_attempts, timeout_seconds, parallel, bulk, worker, secrets, encrypts)
    SELECT _kind, x.type, x.alias_of, x.owner, x.attempts, x.timeout, x.parallel, x.bulk, _worker, coalesce(string_to_array(x.secrets, E'\n'), '{}'),
           coalesce(x.encrypts, false)
      FROM unnest(_types, _aliases, _owners, _attempts, _timeouts, _parallel, _bulk, _secrets, _encrypts)
           AS x (type, alias_of, owner, attempts, timeout, parallel, bulk, secrets, encrypts)
     ORDER BY x.type COLLATE "C"
    ON CONFLICT (kind, type) DO UPDATE
       SET alias_of = excluded.alias_of, owner = coalesce(nullif(excluded.owner, ''), t.owner), max_attempts = excluded.max_attempts,
           timeout_seconds = excluded.timeout_seconds, parallel = excluded.parallel, bulk = excluded.bulk, worker = excluded.worker, last_seen = clock_timestamp(),
           secrets = CASE WHEN _secrets IS NULL THEN t.secrets ELSE excluded.secrets END,
           encrypts = CASE WHEN _encrypts IS NULL THEN t.encrypts ELSE excluded.encrypts END;
    DELETE FROM daybook.job_types t WHERE t.last_seen < clock_timestamp() - interval '90 days';
END
$$;
REVOKE ALL ON FUNCTION daybook.note_job_types FROM PUBLIC;

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.note_job_types;
DROP TABLE daybook.job_types;
