-- Chapter 23: jobs that wait: for their turn in a sequence, for the end of other jobs, and for a
-- callback.
--
-- A job that waits for its turn or for other jobs is pending with a ready_at of 9999-12-31, and
-- first_ready_at says when it is to be due; so picks do not see it. When nothing is left to wait
-- for, it is released: it is due then, or at its time. Statements that name such jobs by their ids
-- ask for the state as text: otherwise they could use the index of due jobs, which has all that
-- wait at one time, and statistics that are older than these jobs expect few of them there.
--
-- No statement here waits for a row lock (SKIP LOCKED), and enqueuing locks nothing but what it
-- inserts. What cannot be decided because a row is locked is put on record (job_wait_checks), and a
-- worker decides it a moment later. So waiting takes part in no deadlock, and an application's open
-- transaction holds up no other job.
--
-- A job can only wait for jobs that exist when it is enqueued, and what it waits for is not changed
-- later. So nothing waits in a circle.
--
-- SQLSTATEs: DB010 the request is invalid, DB011 there is no such job, DB020 the data of a callback
-- is too large, DB021 it is invalid, DB026 there is no such callback, DB027 it came too late, DB028
-- it came before with other data.

-- +goose Up
-- +goose StatementBegin

-- Which jobs must be completed before a job is due. Neither this table nor job_callbacks refers to
-- daybook.jobs by a foreign key, which would cost each job that is removed a statement of its own:
-- forget_waits removes their rows, once a statement.
CREATE TABLE daybook.job_waits (
    job_id text COLLATE "C" NOT NULL,
    awaits text COLLATE "C" NOT NULL CHECK (awaits <> '' AND octet_length(awaits) <= 255),
    any_end boolean NOT NULL DEFAULT false,
    ended_as text CHECK (ended_as IN ('completed', 'failed', 'cancelled', 'removed')),
    replaces boolean NOT NULL DEFAULT false,
    PRIMARY KEY (job_id, awaits),
    CHECK (any_end OR ended_as IS NULL)
);
COMMENT ON COLUMN daybook.job_waits.awaits IS
    'The id of the other job. Unless any_end is set, the row goes when that job is completed, or has failed this one';
COMMENT ON COLUMN daybook.job_waits.any_end IS
    'The job goes on however the other one ends, also as a dead letter; ended_as then says how';
COMMENT ON COLUMN daybook.job_waits.replaces IS
    'The other one is cancelled when its attempt fails: this one does its work, with a newer payload (debounce_job)';
-- What waits for a job, when it ends. Statements that look for what one job waits for say
-- num_nulls(ended_as) = 1 in place of IS NULL: they could use this index, and read it to its end,
-- and while the table is small it costs the planner no more than the primary key.
CREATE INDEX job_waits_awaits ON daybook.job_waits (awaits, job_id) WHERE ended_as IS NULL;

-- Whose turn it is in a sequence; a sequence without open jobs has no row.
CREATE TABLE daybook.job_sequences (
    org_id text COLLATE "C" NOT NULL CHECK (org_id <> '' AND octet_length(org_id) <= 255),
    key    text COLLATE "C" NOT NULL CHECK (key <> '' AND octet_length(key) <= 255),
    holder text COLLATE "C" NOT NULL,
    PRIMARY KEY (org_id, key)
);
COMMENT ON COLUMN daybook.job_sequences.holder IS
    'The job whose turn it is: the others of its sequence wait until it is completed, cancelled or removed';
-- The order of a sequence is that of its jobs' ids, which is that of their creation.
CREATE INDEX jobs_sequence ON daybook.jobs (org_id, sequence, id) WHERE sequence IS NOT NULL AND state IN ('pending', 'leased', 'failed');

-- What a worker has to decide: whose turn it is in a sequence, what waits for a job, whether a job
-- may be due, which jobs of a queue are still in another fleet's hands, or which jobs of a limit's
-- key may begin (limit_all: of all keys that come after that one).
CREATE TABLE daybook.job_wait_checks (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    org_id      text COLLATE "C",
    sequence    text COLLATE "C",
    awaits      text COLLATE "C",
    job_id      text COLLATE "C",
    queue       text COLLATE "C",
    limit_scope text COLLATE "C",
    limit_key   text COLLATE "C",
    limit_all   boolean NOT NULL DEFAULT false,
    CHECK (num_nonnulls(sequence, awaits, job_id, queue, limit_scope) = 1 AND (num_nonnulls(sequence, limit_scope) = 0) = (org_id IS NULL)
           AND (limit_scope IS NULL) = (limit_key IS NULL))
);

-- Callbacks that jobs have asked for. The token is a secret of the other side: only its SHA-256 is
-- here.
CREATE TABLE daybook.job_callbacks (
    token_hash bytea PRIMARY KEY CHECK (octet_length(token_hash) = 32),
    job_id     text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL CHECK (name <> '' AND octet_length(name) <= 64),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    deadline   timestamptz NOT NULL,
    called_at  timestamptz,
    data       jsonb,
    awaited    boolean NOT NULL DEFAULT false,
    seen       boolean NOT NULL DEFAULT false,
    CHECK ((called_at IS NULL) = (data IS NULL)),
    CHECK (NOT seen OR called_at IS NOT NULL)
);
COMMENT ON COLUMN daybook.job_callbacks.name IS 'What the handler calls it: a job may ask for several';
COMMENT ON COLUMN daybook.job_callbacks.awaited IS
    'Who asked for it has waited for it. An attempt that ended otherwise may not have given the token to another '
    'system';
COMMENT ON COLUMN daybook.job_callbacks.seen IS 'An attempt has read what came';
CREATE INDEX job_callbacks_job ON daybook.job_callbacks (job_id, name);

-- Whether a job waits for its turn or for other jobs.
CREATE FUNCTION daybook.is_waiting(job daybook.jobs) RETURNS boolean
    LANGUAGE sql STABLE
AS $$
    SELECT job.state = 'pending' AND job.ready_at = '9999-12-31 00:00:00+00'
           AND (job.sequence IS NOT NULL OR EXISTS (SELECT FROM daybook.job_waits w WHERE w.job_id = job.id AND num_nulls(w.ended_as) = 1))
$$;

-- Whether a job that is tried again has to wait, as if it were enqueued: it has not the turn, or
-- others that it waits for are not completed.
CREATE FUNCTION daybook.must_wait(job_id text, org_id text, sequence text) RETURNS boolean
    LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (SELECT FROM daybook.job_waits w WHERE w.job_id = $1 AND num_nulls(w.ended_as) = 1)
           OR $3 IS NOT NULL AND NOT EXISTS (SELECT FROM daybook.job_sequences s WHERE s.org_id = $2 AND s.key = $3 AND s.holder = $1)
$$;

-- Makes jobs wait that the caller has just inserted as waiting. ids are in the order of the
-- sequences; afters are arrays of ids.
CREATE FUNCTION daybook.hold_jobs(ids text[], orgs text[], sequences text[], afters jsonb[], any_ends boolean[])
    RETURNS void
    LANGUAGE plpgsql
    -- Rows are found by their keys, also when the planner takes a table for a small one, as in the
    -- session or transaction that fills it.
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
    missing record;
BEGIN
    WITH asked AS MATERIALIZED (
        SELECT DISTINCT x.id, x.org, a.awaits, coalesce(x.any_end, false) AS any_end
          FROM unnest(ids, orgs, afters, any_ends) AS x (id, org, after, any_end)
         CROSS JOIN LATERAL jsonb_array_elements_text(x.after) AS a (awaits)
    ), found AS MATERIALIZED (
        SELECT k.id, k.org, k.awaits, k.any_end, j.state,
               CASE WHEN k.any_end AND j.state IN ('completed', 'failed', 'cancelled') THEN j.state::text END AS ended_as
          FROM asked k
          LEFT JOIN daybook.jobs j ON j.id = k.awaits AND j.org_id = k.org
    ), inserted AS (
        -- A completed job stays completed: nothing is left to wait for.
        INSERT INTO daybook.job_waits (job_id, awaits, any_end, ended_as)
        SELECT f.id, f.awaits, f.any_end, f.ended_as FROM found f WHERE f.state <> 'completed' OR f.any_end
        RETURNING awaits, ended_as
    ), checks AS (
        INSERT INTO daybook.job_wait_checks (awaits) SELECT DISTINCT i.awaits FROM inserted i WHERE i.ended_as IS NULL
    )
    SELECT f.org, f.awaits INTO missing FROM found f WHERE f.state IS NULL LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'there is no job % of organization % to wait for', missing.awaits, missing.org
            USING ERRCODE = 'DB011', HINT = 'it may have been purged; enqueue what is to be done first before what waits for it';
    END IF;
    INSERT INTO daybook.job_wait_checks (org_id, sequence)
    SELECT DISTINCT x.org, x.sequence FROM unnest(orgs, sequences) AS x (org, sequence) WHERE x.sequence IS NOT NULL;
    UPDATE daybook.jobs j
       SET ready_at = j.first_ready_at
     WHERE j.id IN (SELECT x.id FROM unnest(ids, sequences) AS x (id, sequence) WHERE x.sequence IS NULL) AND j.ready_at = '9999-12-31 00:00:00+00'
       -- OFFSET 0 has each job's waits looked up by their key: as a join, or hashed, it would be a
       -- walk over the table while that seems empty.
       AND NOT EXISTS (SELECT FROM daybook.job_waits w WHERE w.job_id = j.id AND num_nulls(w.ended_as) = 1 OFFSET 0);
END
$$;

-- Puts those of the jobs on record that wait and have been tried again: a worker decides about
-- them.
CREATE FUNCTION daybook.note_waiting(ids text[]) RETURNS void
    LANGUAGE sql
AS $$
    INSERT INTO daybook.job_wait_checks (org_id, sequence, job_id)
    SELECT CASE WHEN j.sequence IS NOT NULL THEN j.org_id END, j.sequence, CASE WHEN j.sequence IS NULL THEN j.id END
      FROM daybook.jobs j
     WHERE j.id = ANY (ids) AND j.ready_at = '9999-12-31 00:00:00+00' AND j.state::text = 'pending'
    UNION
    SELECT NULL, NULL, j.id FROM daybook.jobs j WHERE j.id = ANY (ids) AND j.ready_at = '9999-12-31 00:00:00+00' AND j.state::text = 'pending'
$$;

-- Releases those of the jobs that wait for nothing any more, whose rows the caller has locked.
CREATE FUNCTION daybook.release_jobs(ids text[]) RETURNS void
    LANGUAGE plpgsql
AS $$
DECLARE
    due timestamptz;
BEGIN
    WITH released AS (
        UPDATE daybook.jobs j
           SET ready_at = greatest(j.first_ready_at, clock_timestamp()), first_ready_at = greatest(j.first_ready_at, clock_timestamp()),
               updated_at = clock_timestamp()
         WHERE j.id = ANY (ids) AND j.state::text = 'pending' AND j.ready_at = '9999-12-31 00:00:00+00' AND NOT daybook.must_wait(j.id, j.org_id, j.sequence)
        RETURNING j.ready_at
    )
    SELECT min(r.ready_at) INTO due FROM released r;
    IF due <= clock_timestamp() + interval '1 minute' THEN
        PERFORM daybook.wake_job_queue();
    END IF;
END
$$;

-- Whether a wait concerns an end: a dead letter may yet be completed, and ends only the waits for
-- any end.
CREATE FUNCTION daybook.ends_wait(any_end boolean, ended_as text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
AS $$ SELECT $1 OR $2 <> 'failed' $$;

-- Decides about up to batch jobs that wait for a job which has ended: if it was completed they are
-- released, and any other end makes dead letters of those that wait for its completion. Returns
-- false when there are more, or another transaction has locked one.
CREATE FUNCTION daybook.tell_waiting_jobs(ended text, ended_as text, batch integer) RETURNS boolean
    LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    told     text[];
    go_on    text[];
BEGIN
    SELECT array_agg(x.id), array_agg(x.id) FILTER (WHERE x.any_end OR ended_as = 'completed') INTO told, go_on
      FROM (SELECT j.id, w.any_end
              FROM daybook.job_waits w
              JOIN daybook.jobs j ON j.id = w.job_id
             WHERE w.awaits = ended AND w.ended_as IS NULL AND daybook.ends_wait(w.any_end, ended_as)
             ORDER BY w.job_id
             LIMIT batch
               FOR NO KEY UPDATE OF j SKIP LOCKED) x;
    IF told IS NOT NULL THEN
        UPDATE daybook.job_waits w SET ended_as = ended_as WHERE w.awaits = ended AND w.job_id = ANY (told) AND w.any_end;
        DELETE FROM daybook.job_waits w WHERE w.awaits = ended AND w.job_id = ANY (told) AND NOT w.any_end;
        IF go_on IS NOT NULL THEN
            PERFORM daybook.release_jobs(go_on);
        END IF;
        UPDATE daybook.jobs j
           SET state = 'failed', ready_at = j.first_ready_at, finished_at = clock_timestamp(), updated_at = clock_timestamp(), last_error_code = 'AWAITED_CANCELLED',
               last_error = format('the job %s, for which it waited, was %s: retry this one to work it without that, or cancel it', ended, ended_as)
         WHERE j.id = ANY (told) AND (go_on IS NULL OR j.id <> ALL (go_on)) AND j.state::text = 'pending' AND j.ready_at = '9999-12-31 00:00:00+00';
    END IF;
    RETURN NOT EXISTS (SELECT FROM daybook.job_waits w WHERE w.awaits = ended AND w.ended_as IS NULL AND daybook.ends_wait(w.any_end, ended_as));
END
$$;

-- Decides what the jobs that wait for a job have to wait for. Returns false when that has to be
-- tried again.
CREATE FUNCTION daybook.check_awaited(awaited text, batch integer) RETURNS boolean
    LANGUAGE plpgsql
AS $$
DECLARE
    job record;
BEGIN
    -- The lock: as long as it is held, the job does not end, and the transaction that ends it later
    -- sees that it is awaited.
    SELECT j.state, j.awaited INTO job FROM daybook.jobs j WHERE j.id = check_awaited.awaited FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        IF EXISTS (SELECT FROM daybook.jobs j WHERE j.id = check_awaited.awaited) THEN
            RETURN false;
        END IF;
        RETURN daybook.tell_waiting_jobs(check_awaited.awaited, 'removed', batch);
    END IF;
    IF job.state IN ('completed', 'cancelled') THEN
        RETURN daybook.tell_waiting_jobs(check_awaited.awaited, job.state::text, batch);
    END IF;
    IF job.state = 'failed' AND NOT daybook.tell_waiting_jobs(check_awaited.awaited, 'failed', batch) THEN
        RETURN false;
    END IF;
    IF NOT job.awaited THEN
        UPDATE daybook.jobs j SET awaited = true WHERE j.id = check_awaited.awaited;
    END IF;
    RETURN true;
END
$$;

-- Decides whose turn it is in a sequence, and releases that job. The turn goes to the first job
-- that is not completed or cancelled; a dead letter keeps it. Returns false when that has to be
-- tried again.
CREATE FUNCTION daybook.check_sequence(org_id text, sequence text) RETURNS boolean
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    turn  text;
    state text;
BEGIN
    SELECT s.holder INTO turn
      FROM daybook.job_sequences s
     WHERE s.org_id = check_sequence.org_id AND s.key = check_sequence.sequence
       FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        -- An insertion would wait for a transaction that has changed the row or removed it.
        IF EXISTS (SELECT FROM daybook.job_sequences s WHERE s.org_id = check_sequence.org_id AND s.key = check_sequence.sequence) THEN
            RETURN false;
        END IF;
        INSERT INTO daybook.job_sequences (org_id, key, holder) VALUES (check_sequence.org_id, check_sequence.sequence, '')
        ON CONFLICT DO NOTHING
        RETURNING holder INTO turn;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
    END IF;
    FOR i IN 1..2 LOOP
        SELECT j.state INTO state FROM daybook.jobs j WHERE j.id = turn FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND AND EXISTS (SELECT FROM daybook.jobs j WHERE j.id = turn) THEN
            RETURN false;
        END IF;
        IF state IN ('pending', 'leased', 'failed') THEN
            PERFORM daybook.release_jobs(ARRAY[turn]);
            RETURN true;
        END IF;
        turn := (SELECT j.id
                   FROM daybook.jobs j
                  WHERE j.org_id = check_sequence.org_id AND j.sequence = check_sequence.sequence AND j.state IN ('pending', 'leased', 'failed')
                  ORDER BY j.id
                  LIMIT 1);
        IF turn IS NULL THEN
            DELETE FROM daybook.job_sequences s WHERE s.org_id = check_sequence.org_id AND s.key = check_sequence.sequence;
            RETURN true;
        END IF;
        UPDATE daybook.job_sequences s SET holder = turn WHERE s.org_id = check_sequence.org_id AND s.key = check_sequence.sequence;
    END LOOP;
    RETURN false;
END
$$;

-- Decides whether a job may be due, also because the callback that it waits for has come. Returns
-- false when that has to be tried again.
CREATE FUNCTION daybook.check_waiting_job(job_id text) RETURNS boolean
    LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM FROM daybook.jobs j WHERE j.id = check_waiting_job.job_id FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN NOT EXISTS (SELECT FROM daybook.jobs j WHERE j.id = check_waiting_job.job_id);
    END IF;
    PERFORM daybook.release_jobs(ARRAY[check_waiting_job.job_id]);
    UPDATE daybook.jobs j
       SET ready_at = clock_timestamp(), first_ready_at = least(j.first_ready_at, clock_timestamp()), updated_at = clock_timestamp()
     WHERE j.id = check_waiting_job.job_id AND j.state::text = 'pending' AND j.last_error_code = 'AWAITING_CALLBACK' AND j.ready_at > clock_timestamp()
       AND EXISTS (SELECT FROM daybook.job_callbacks c WHERE c.job_id = j.id AND c.called_at IS NOT NULL AND NOT c.seen);
    IF FOUND THEN
        PERFORM daybook.wake_job_queue();
    END IF;
    RETURN true;
END
$$;

-- Decides up to batch things on record, from an id on, and up to batch jobs whose limit comes first,
-- from a time on. Returns how many were decided, how many are to be tried again, the last id of them
-- (0: none), and from when on jobs with a limit are left (null: none are). Workers call it.
CREATE FUNCTION daybook.check_waits(batch integer DEFAULT 500, beyond bigint DEFAULT 0, since timestamptz DEFAULT '-infinity',
    OUT decided integer, OUT again integer, OUT last bigint, OUT left_from timestamptz)
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET jit = off
AS $$
DECLARE
    ids   bigint[];
    asked record;
    done  boolean;
BEGIN
    decided := 0;
    again := 0;
    SELECT g.decided, g.again, g.left_from INTO decided, again, left_from FROM daybook.pass_limits(batch, since) g;
    ids := ARRAY(SELECT t.id FROM daybook.job_wait_checks t WHERE t.id > beyond ORDER BY t.id LIMIT batch FOR UPDATE SKIP LOCKED);
    last := coalesce(ids[cardinality(ids)], 0);
    FOR asked IN
        WITH taken AS (
            DELETE FROM daybook.job_wait_checks c WHERE c.id = ANY (ids)
            RETURNING c.org_id, c.sequence, c.awaits, c.job_id, c.queue, c.limit_scope, c.limit_key, c.limit_all
        )
        SELECT DISTINCT * FROM taken t ORDER BY t.org_id, t.sequence, t.awaits, t.job_id, t.queue, t.limit_scope, t.limit_key
    LOOP
        done := CASE
            WHEN asked.sequence IS NOT NULL THEN daybook.check_sequence(asked.org_id, asked.sequence)
            WHEN asked.awaits IS NOT NULL THEN daybook.check_awaited(asked.awaits, batch)
            WHEN asked.queue IS NOT NULL THEN daybook.move_queue(asked.queue)
            WHEN asked.limit_all THEN daybook.admit_all_limited(asked.limit_scope, asked.org_id, asked.limit_key, batch)
            WHEN asked.limit_scope IS NOT NULL THEN daybook.admit_limited(asked.limit_scope, asked.org_id, asked.limit_key)
            ELSE daybook.check_waiting_job(asked.job_id) END;
        IF done THEN
            decided := decided + 1;
        ELSE
            again := again + 1;
            INSERT INTO daybook.job_wait_checks (org_id, sequence, awaits, job_id, queue, limit_scope, limit_key, limit_all)
            VALUES (asked.org_id, asked.sequence, asked.awaits, asked.job_id, asked.queue, asked.limit_scope, asked.limit_key, asked.limit_all);
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION daybook.check_waits IS
    'Releases jobs that wait for nothing any more, or whose limit allows it, and moves jobs of queues to their '
    'fleets, where the transaction that caused it could not. Workers call it';

-- However a job ends, what waits for it learns of that in the same transaction: a few jobs at once,
-- the others by way of check_waits. A transaction of another isolation level does not see what was
-- committed after it began, and leaves all to check_waits.
CREATE FUNCTION daybook.tell_of_ended_job(job daybook.jobs, ended_as text) RETURNS void
    LANGUAGE plpgsql
AS $$
DECLARE
    sees CONSTANT boolean := current_setting('transaction_isolation') = 'read committed';
    left_over boolean := false;
BEGIN
    IF job.sequence IS NOT NULL AND ended_as <> 'failed'
       AND (NOT sees OR EXISTS (SELECT FROM daybook.job_sequences s WHERE s.org_id = job.org_id AND s.key = job.sequence AND s.holder = job.id))
       AND (NOT sees OR NOT daybook.check_sequence(job.org_id, job.sequence)) THEN
        INSERT INTO daybook.job_wait_checks (org_id, sequence) VALUES (job.org_id, job.sequence);
        left_over := true;
    END IF;
    IF (NOT sees OR EXISTS (SELECT FROM daybook.job_waits w WHERE w.awaits = job.id AND w.ended_as IS NULL))
       AND (NOT sees OR NOT daybook.tell_waiting_jobs(job.id, ended_as, 100)) THEN
        INSERT INTO daybook.job_wait_checks (awaits) VALUES (job.id);
        left_over := true;
    END IF;
    IF left_over THEN
        PERFORM daybook.wake_job_queue();
    END IF;
END
$$;

CREATE FUNCTION daybook.awaited_job_removed() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    IF OLD.limit_key IS NOT NULL THEN
        PERFORM daybook.limited_job_changed(OLD, NULL);
    END IF;
    PERFORM daybook.tell_of_ended_job(OLD, 'removed');
    RETURN NULL;
END
$$;
CREATE TRIGGER awaited_goes AFTER DELETE ON daybook.jobs
    FOR EACH ROW WHEN (OLD.awaited AND OLD.state NOT IN ('completed', 'cancelled'))
    EXECUTE FUNCTION daybook.awaited_job_removed();

-- What a removed job waited for goes with it, and so do its steps. As a foreign key would, it needs
-- no right of the caller's.
CREATE FUNCTION daybook.forget_waits() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    DELETE FROM daybook.job_waits w USING removed r WHERE w.job_id = r.id;
    DELETE FROM daybook.job_callbacks c USING removed r WHERE c.job_id = r.id;
    IF EXISTS (SELECT FROM removed r WHERE r.awaited) THEN
        DELETE FROM daybook.job_steps s USING removed r WHERE s.job_id = r.id AND r.awaited;
    END IF;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION daybook.forget_waits FROM PUBLIC; -- the right to execute it is the right to make it a trigger of any table
CREATE TRIGGER waiting_goes AFTER DELETE ON daybook.jobs
    REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION daybook.forget_waits();

-- A job does not wait for a callback that came while it was worked.
CREATE FUNCTION daybook.find_callback(job_id text) RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    IF EXISTS (SELECT FROM daybook.job_callbacks c WHERE c.job_id = find_callback.job_id AND c.called_at IS NOT NULL AND NOT c.seen)
       OR current_setting('transaction_isolation') <> 'read committed' THEN
        INSERT INTO daybook.job_wait_checks (job_id) VALUES (find_callback.job_id);
        PERFORM daybook.wake_job_queue();
    END IF;
END
$$;

-- There is one trigger of updates, and its condition is one column: PostgreSQL reads the conditions
-- of all triggers anew for each statement, also for the jobs that no other one awaits. (Three with
-- longer conditions took 10 µs of each statement, this one takes 4.)
CREATE FUNCTION daybook.awaited_job_changed() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    -- Nothing waits for most jobs that end. That is found here, without a call: what comes below
    -- costs more than the rest of a completion.
    IF NEW.finished_at IS NOT NULL AND NEW.sequence IS NULL AND current_setting('transaction_isolation') = 'read committed' THEN
        IF NOT EXISTS (SELECT FROM daybook.job_waits w WHERE w.awaits = NEW.id AND w.ended_as IS NULL) THEN
            IF EXISTS (SELECT FROM daybook.jobs j
                        WHERE j.limit_scope = OLD.limit_scope AND j.org_id = OLD.org_id AND j.limit_key = OLD.limit_key AND j.finished_at IS NULL AND j.fleet = -2) THEN
                PERFORM daybook.limited_job_changed(OLD, NEW);
            END IF;
            RETURN NULL;
        END IF;
    END IF;
    IF num_nonnulls(NEW.limit_key, OLD.limit_key) > 0 THEN
        -- It joins its key's line, is admitted, or lines up anew without a request: limited_job_changed,
        -- which has it do that, also passes its place on.
        IF NEW.state = 'pending' AND NEW.fleet <> OLD.fleet
           AND (OLD.fleet < 0 OR NEW.fleet < 0 AND NEW.generation = OLD.generation AND NEW.limit_key = OLD.limit_key) THEN
            RETURN NULL;
        END IF;
        PERFORM daybook.limited_job_changed(OLD, NEW);
    END IF;
    -- It was asked for anew while it was worked: the steps were kept for the request before.
    IF OLD.state = 'leased' AND NEW.state = 'pending' AND OLD.generation <> OLD.leased_generation AND NOT OLD.cancel_requested THEN
        DELETE FROM daybook.job_steps s WHERE s.job_id = NEW.id;
    END IF;
    IF NEW.state IN ('completed', 'failed', 'cancelled') THEN
        IF NEW.state <> OLD.state AND OLD.state NOT IN ('completed', 'cancelled') THEN
            PERFORM daybook.tell_of_ended_job(OLD, NEW.state::text);
        END IF;
    ELSIF NEW.last_error_code = 'AWAITING_CALLBACK' AND NEW.state = 'pending' AND NEW.ready_at > OLD.ready_at THEN
        UPDATE daybook.job_callbacks c SET awaited = true WHERE c.job_id = NEW.id AND NOT c.awaited;
        PERFORM daybook.find_callback(NEW.id);
    ELSIF NEW.state = 'pending' AND OLD.state = 'leased' THEN
        PERFORM daybook.yield_to_newer(NEW.id);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER awaited_changed AFTER UPDATE ON daybook.jobs
    FOR EACH ROW WHEN (NEW.awaited)
    EXECUTE FUNCTION daybook.awaited_job_changed();

-- Tells a job what it waits for. result: received, or unchanged when the same data came before.
CREATE FUNCTION daybook.complete_callback(token text, data jsonb, OUT job_id text, OUT result text)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    asked daybook.job_callbacks;
    state text;
BEGIN
    PERFORM daybook.check_job_payload(complete_callback.data, complete_callback.data::text);
    SELECT * INTO asked FROM daybook.job_callbacks c WHERE c.token_hash = sha256(convert_to(token, 'UTF8')) FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no such callback' USING ERRCODE = 'DB026', HINT = 'its job may have been purged';
    END IF;
    job_id := asked.job_id;
    IF asked.called_at IS NOT NULL THEN
        IF asked.data <> complete_callback.data THEN
            RAISE EXCEPTION 'the callback came before with other data' USING ERRCODE = 'DB028', HINT = 'the first data count';
        END IF;
        result := 'unchanged';
        RETURN;
    END IF;
    SELECT j.state INTO state FROM daybook.jobs j WHERE j.id = asked.job_id;
    IF asked.deadline <= clock_timestamp() OR state IN ('completed', 'cancelled') THEN
        RAISE EXCEPTION 'nothing waits for the callback any more' USING ERRCODE = 'DB027', HINT = 'it came after its deadline, or its job has ended';
    END IF;
    UPDATE daybook.job_callbacks c SET called_at = clock_timestamp(), data = complete_callback.data WHERE c.token_hash = asked.token_hash;
    INSERT INTO daybook.job_wait_checks (job_id) VALUES (asked.job_id);
    -- All fleets: the job may be of any, and the workers of any decide what is on record.
    PERFORM daybook.wake_job_queue();
    result := 'received';
END
$$;
-- Asks for a job that begins when a callback comes, or at its deadline: its first attempt reads the
-- callback by its name. The token is returned once, and is null when the job existed before. The
-- other arguments are those of enqueue_job.
CREATE FUNCTION daybook.enqueue_job_with_callback(
    org_id          text,
    type            text,
    payload         jsonb,
    callback        text,
    within          interval,
    idempotency_key text DEFAULT NULL,
    priority        integer DEFAULT NULL,
    max_attempts    integer DEFAULT NULL,
    links           jsonb DEFAULT NULL,
    queue           text DEFAULT NULL,
    min_version     integer DEFAULT NULL,
    limit_key       text DEFAULT NULL,
    OUT job_id      text,
    OUT duplicate   boolean,
    OUT result      text,
    OUT token       text
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    due CONSTANT timestamptz := clock_timestamp() + within;
BEGIN
    IF (octet_length(callback) BETWEEN 1 AND 64 AND within > interval '0' AND within <= interval '10 years') IS NOT TRUE THEN
        RAISE EXCEPTION 'a callback must have a name of 1 to 64 bytes, and some time to come, 10 years at most' USING ERRCODE = 'DB010';
    END IF;
    SELECT e.job_id, e.duplicate, e.result INTO job_id, duplicate, result
      FROM daybook.enqueue_job(org_id, type, payload, idempotency_key, due, priority, max_attempts, links, queue => queue, min_version => min_version,
                               limit_key => limit_key) e;
    IF duplicate THEN
        RETURN;
    END IF;
    -- Three random UUIDs have 366 random bits, of a strong source.
    token := translate(rtrim(encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'base64'), '='), '+/', '-_');
    INSERT INTO daybook.job_callbacks (token_hash, job_id, name, deadline, awaited) VALUES (sha256(convert_to(token, 'UTF8')), job_id, callback, due, true);
    UPDATE daybook.jobs j
       SET awaited = true, last_error_code = 'AWAITING_CALLBACK', last_error = format('waiting for the callback "%s", until %s at most', callback, to_char(due AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'))
     WHERE j.id = job_id;
END
$$;
COMMENT ON FUNCTION daybook.enqueue_job_with_callback IS
    'Asks for a background job that begins when another system answers, or at the deadline. Returns the token for '
    'that system once';

COMMENT ON FUNCTION daybook.complete_callback IS
    'Tells a job what it waits for: token is the one that its handler gave away, data a JSON object';

-- +goose StatementEnd

-- +goose Down
DROP TRIGGER awaited_changed ON daybook.jobs;
DROP FUNCTION daybook.enqueue_job_with_callback, daybook.complete_callback, daybook.awaited_job_changed,
    daybook.find_callback;
DROP TRIGGER waiting_goes ON daybook.jobs;
DROP TRIGGER awaited_goes ON daybook.jobs;
DROP FUNCTION daybook.forget_waits, daybook.awaited_job_removed, daybook.tell_of_ended_job, daybook.check_waits,
    daybook.check_waiting_job, daybook.check_sequence, daybook.check_awaited,
    daybook.tell_waiting_jobs, daybook.ends_wait, daybook.release_jobs, daybook.note_waiting, daybook.hold_jobs,
    daybook.must_wait, daybook.is_waiting;
DROP INDEX daybook.jobs_sequence;
DROP TABLE daybook.job_callbacks, daybook.job_wait_checks, daybook.job_sequences, daybook.job_waits;
