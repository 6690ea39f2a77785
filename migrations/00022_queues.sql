-- Chapter 22: named queues of background jobs, and the fleets of workers that they belong to.
--
-- SQLSTATEs: DB010 the request is invalid, DB023 there is no such queue, DB025 the queue has open
-- jobs.

-- +goose Up
-- +goose StatementBegin

-- Fleets by their numbers, which jobs and indexes hold: a number costs a job nothing.
CREATE TABLE daybook.fleets (
    id         smallint PRIMARY KEY CHECK (id >= 0),
    name       text COLLATE "C" NOT NULL UNIQUE CHECK (name ~ '^([a-z0-9][a-z0-9_.-]{0,62})?$'),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK ((id = 0) = (name = ''))
);
COMMENT ON TABLE daybook.fleets IS 'Sets of programs that work the same queues: a worker belongs to one';
COMMENT ON COLUMN daybook.fleets.id IS '0 is the fleet without a name, which works the jobs that are in no named queue';
INSERT INTO daybook.fleets (id, name) VALUES (0, '');
CREATE TRIGGER fleets_stay BEFORE DELETE OR TRUNCATE ON daybook.fleets
    FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_removal();

CREATE TABLE daybook.queues (
    name         text COLLATE "C" PRIMARY KEY CHECK (name ~ '^[A-Za-z][A-Za-z0-9_.:-]{0,63}$' AND name <> 'default'),
    fleet        smallint NOT NULL DEFAULT 0 REFERENCES daybook.fleets (id),
    max_parallel integer CHECK (max_parallel > 0),
    rate         integer CHECK (rate > 0),
    rate_seconds double precision CHECK (rate_seconds BETWEEN 0.001 AND 31536000),
    rate_burst   integer CHECK (rate_burst > 0),
    owner        text NOT NULL DEFAULT '' CHECK (octet_length(owner) <= 255),
    paused_at    timestamptz,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    per_process  integer CHECK (per_process > 0),
    set_by       text CHECK (octet_length(set_by) BETWEEN 1 AND 255),
    set_at       timestamptz,
    declared     jsonb,
    CHECK ((set_by IS NULL) = (set_at IS NULL)),
    CHECK (declared IS NULL OR set_by IS NOT NULL),
    CHECK ((rate IS NULL) = (rate_seconds IS NULL)),
    CHECK (rate_burst IS NULL OR rate IS NOT NULL)
);
COMMENT ON COLUMN daybook.queues.fleet IS 'The fleet whose workers work it';
COMMENT ON COLUMN daybook.queues.max_parallel IS
    'How many of its jobs may be leased at a time, over all workers; null: any number';
COMMENT ON COLUMN daybook.queues.per_process IS
    'How many of its jobs each worker process may have leased at a time; null: any number';
COMMENT ON COLUMN daybook.queues.rate IS
    'How many attempts may begin in rate_seconds, over all workers; null: any number';
COMMENT ON COLUMN daybook.queues.rate_burst IS
    'How many of them may begin at once; null: what the rate allows in 50 ms, at least one';
COMMENT ON COLUMN daybook.queues.owner IS 'The team or contact responsible; empty: it is not said';
COMMENT ON COLUMN daybook.queues.set_by IS
    'Which person has set the settings; null: they are those that programs ask for';
COMMENT ON COLUMN daybook.queues.declared IS
    'While a person has set them, those that programs have asked for last, as arguments of set_queue; null: none has';
COMMENT ON COLUMN daybook.queues.paused_at IS 'Since when nothing of it is leased; null: it is not paused';

-- What is left of a queue's rate. A table of its own, because each lease of such a queue writes it,
-- and each scan reads daybook.queues.
CREATE TABLE daybook.queue_rates (
    queue  text COLLATE "C" PRIMARY KEY REFERENCES daybook.queues (name) ON DELETE CASCADE,
    starts double precision NOT NULL,
    at     timestamptz NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
COMMENT ON TABLE daybook.queue_rates IS
    'How many attempts could begin at a time, of each queue with a rate that was leased from';

-- The number of a fleet, which is made if there is none of that name.
CREATE FUNCTION daybook.fleet_of(name text) RETURNS smallint
    LANGUAGE plpgsql
AS $$
DECLARE
    found smallint;
BEGIN
    SELECT f.id INTO found FROM daybook.fleets f WHERE f.name = coalesce(fleet_of.name, '');
    IF found IS NOT NULL THEN
        RETURN found;
    END IF;
    IF fleet_of.name !~ '^[a-z0-9][a-z0-9_.-]{0,62}$' THEN
        RAISE EXCEPTION '% cannot be the name of a fleet', quote_literal(fleet_of.name)
            USING ERRCODE = 'DB010', HINT = 'take lower-case letters, digits, "_", "." and "-", 63 at most, and begin with a letter or a digit';
    END IF;
    -- One at a time: numbers are without gaps.
    PERFORM pg_advisory_xact_lock(daybook.lock_class('fleets'), 0);
    INSERT INTO daybook.fleets (id, name)
    SELECT max(f.id) + 1, fleet_of.name FROM daybook.fleets f
    ON CONFLICT DO NOTHING;
    RETURN (SELECT f.id FROM daybook.fleets f WHERE f.name = fleet_of.name);
END
$$;
COMMENT ON FUNCTION daybook.fleet_of IS 'The number of a fleet; it is made on first use';

-- The fleet of a queue that a job is enqueued in. What does not exist is refused: a misspelt name
-- would go around the limits of the queue that was meant.
CREATE FUNCTION daybook.queue_fleet(queue text) RETURNS smallint
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    found smallint;
BEGIN
    SELECT u.fleet INTO found FROM daybook.queues u WHERE u.name = queue_fleet.queue;
    IF found IS NULL AND (queue_fleet.queue IS NULL OR octet_length(queue_fleet.queue) > 64 OR queue_fleet.queue !~ '^[A-Za-z][A-Za-z0-9_.:-]*$') THEN
        RAISE EXCEPTION 'queue must be a letter and then letters, digits, "_", ".", ":" or "-", 64 bytes at most' USING ERRCODE = 'DB010';
    END IF;
    IF found IS NULL THEN
        RAISE EXCEPTION 'there is no queue %', quote_literal(queue_fleet.queue)
            USING ERRCODE = 'DB023', HINT = 'make it first: SELECT daybook.set_queue(name), or `daybook queues create NAME`';
    END IF;
    RETURN found;
END
$$;
COMMENT ON FUNCTION daybook.queue_fleet IS 'The fleet that works a queue; DB023 when there is no such queue';

-- Whether the jobs of a queue may be worked uncounted: false for one with a limit or a rate, null
-- for one that is paused. A function, so that the statement that asks it reads the table for jobs
-- in queues alone.
CREATE FUNCTION daybook.queue_uncounted(queue text) RETURNS boolean
    LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (SELECT CASE WHEN u.paused_at IS NULL THEN num_nonnulls(u.max_parallel, u.rate, u.per_process) = 0 END
              FROM (SELECT) AS one LEFT JOIN daybook.queues u ON u.name = queue_uncounted.queue);
END
$$;

-- Moves up to batch open jobs of a queue to the fleet that works it, and wakes that. Returns false
-- when others are left, because they are more or a row is locked.
CREATE FUNCTION daybook.move_queue(queue text, batch integer DEFAULT 1000) RETURNS boolean
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
DECLARE
    target smallint;
    others smallint[];
BEGIN
    SELECT u.fleet, ARRAY(SELECT f.id FROM daybook.fleets f WHERE f.id <> u.fleet) INTO target, others FROM daybook.queues u WHERE u.name = move_queue.queue;
    UPDATE daybook.jobs j
       SET fleet = target
     WHERE j.id = ANY (ARRAY(SELECT o.id
                               FROM daybook.jobs o
                              WHERE o.queue = move_queue.queue AND o.state IN ('pending', 'leased', 'failed') AND o.fleet = ANY (others)
                              LIMIT batch
                                FOR NO KEY UPDATE SKIP LOCKED));
    IF FOUND THEN
        PERFORM daybook.wake_job_queue(target);
    END IF;
    RETURN NOT EXISTS (SELECT FROM daybook.jobs o WHERE o.queue = move_queue.queue AND o.state IN ('pending', 'leased', 'failed') AND o.fleet = ANY (others));
END
$$;

-- The settings of a queue as the arguments of set_queue.
CREATE FUNCTION daybook.queue_settings(of daybook.queues) RETURNS jsonb
    LANGUAGE sql STABLE
AS $$
    SELECT jsonb_build_object('fleet', (SELECT f.name FROM daybook.fleets f WHERE f.id = $1.fleet), 'max_parallel', $1.max_parallel, 'rate', $1.rate,
                              'rate_seconds', $1.rate_seconds, 'rate_burst', $1.rate_burst, 'owner', $1.owner, 'per_process', $1.per_process)
$$;

-- Makes a queue, or gives it these settings: what is null is at its default. A pause stays. Open
-- jobs go to the fleet that is named: 1,000 at once, the others by way of check_waits, so that the
-- change holds few rows.
--
-- set_by: a person sets them, whose settings count until release_queue gives them back to the
-- programs. What a program asks for meanwhile, as each does when it starts, is kept and counts
-- then.
--
-- Returns whether the settings that count were changed.
CREATE FUNCTION daybook.set_queue(
    name         text,
    fleet        text DEFAULT NULL,
    max_parallel integer DEFAULT NULL,
    rate         integer DEFAULT NULL,
    rate_seconds double precision DEFAULT NULL,
    rate_burst   integer DEFAULT NULL,
    owner        text DEFAULT NULL,
    per_process  integer DEFAULT NULL,
    set_by       text DEFAULT NULL
) RETURNS boolean
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    target CONSTANT smallint := daybook.fleet_of(set_queue.fleet);
    per    CONSTANT double precision := CASE WHEN set_queue.rate IS NOT NULL THEN coalesce(set_queue.rate_seconds, 1) END;
    asked  CONSTANT jsonb := jsonb_build_object('fleet', set_queue.fleet, 'max_parallel', set_queue.max_parallel, 'rate', set_queue.rate,
                                                'rate_seconds', per, 'rate_burst', set_queue.rate_burst, 'owner', set_queue.owner,
                                                'per_process', set_queue.per_process);
    made   daybook.queues;
BEGIN
    IF set_queue.name = 'default' THEN
        RAISE EXCEPTION 'default is where jobs are that are in no named queue: it has no settings'
            USING ERRCODE = 'DB010', HINT = 'enqueue in a queue of another name';
    END IF;
    IF set_queue.name IS NULL OR set_queue.name !~ '^[A-Za-z][A-Za-z0-9_.:-]{0,63}$' THEN
        RAISE EXCEPTION '% cannot be the name of a queue', coalesce(quote_literal(set_queue.name), 'null')
            USING ERRCODE = 'DB010', HINT = 'take a letter and then letters, digits, "_", ".", ":" or "-", 64 bytes at most';
    END IF;
    IF set_queue.max_parallel < 1 OR set_queue.per_process < 1 OR set_queue.rate < 1 OR set_queue.rate_burst < 1 THEN
        RAISE EXCEPTION 'max_parallel, per_process, rate and rate_burst must be at least 1, or null'
            USING ERRCODE = 'DB010', HINT = 'pause the queue if nothing of it is to be worked';
    END IF;
    IF per NOT BETWEEN 0.001 AND 31536000 OR set_queue.rate IS NULL AND num_nonnulls(set_queue.rate_seconds, set_queue.rate_burst) > 0 THEN
        RAISE EXCEPTION 'a rate is a number of jobs in 0.001 to 31536000 seconds, and rate_seconds and rate_burst belong to one' USING ERRCODE = 'DB010';
    END IF;
    IF octet_length(set_queue.owner) > 255 OR octet_length(set_queue.set_by) NOT BETWEEN 1 AND 255 THEN
        RAISE EXCEPTION 'owner may have 255 bytes, and set_by 1 to 255, or be null' USING ERRCODE = 'DB010';
    END IF;
    INSERT INTO daybook.queues AS u (name, fleet, max_parallel, rate, rate_seconds, rate_burst, owner, per_process, set_by, set_at)
    VALUES (set_queue.name, target, set_queue.max_parallel, set_queue.rate, per, set_queue.rate_burst, coalesce(set_queue.owner, ''), set_queue.per_process,
            set_queue.set_by, CASE WHEN set_queue.set_by IS NOT NULL THEN clock_timestamp() END)
    ON CONFLICT (name) DO UPDATE
       SET fleet = excluded.fleet, max_parallel = excluded.max_parallel, rate = excluded.rate, rate_seconds = excluded.rate_seconds,
           rate_burst = excluded.rate_burst, owner = excluded.owner, per_process = excluded.per_process, updated_at = clock_timestamp(),
           set_by = excluded.set_by, set_at = excluded.set_at,
           declared = CASE WHEN u.set_by IS NOT NULL THEN u.declared
                           WHEN excluded.set_by IS NOT NULL THEN daybook.queue_settings(u) END
     WHERE (excluded.set_by IS NOT NULL OR u.set_by IS NULL)
       AND (u.set_by IS DISTINCT FROM excluded.set_by OR (u.fleet, u.max_parallel, u.rate, u.rate_seconds, u.rate_burst, u.owner, u.per_process)
           IS DISTINCT FROM (excluded.fleet, excluded.max_parallel, excluded.rate, excluded.rate_seconds, excluded.rate_burst, excluded.owner,
                             excluded.per_process))
    RETURNING u.* INTO made;
    IF NOT FOUND THEN
        SELECT u.* INTO made FROM daybook.queues u WHERE u.name = set_queue.name;
        IF set_queue.set_by IS NULL AND made.set_by IS NOT NULL AND made.declared IS DISTINCT FROM asked THEN
            UPDATE daybook.queues u SET declared = asked WHERE u.name = made.name AND u.set_by IS NOT NULL;
            RAISE NOTICE '% has set the queue %: these settings are kept, and count when daybook.release_queue gives it back', made.set_by, made.name;
        END IF;
        RETURN false;
    END IF;
    IF NOT daybook.move_queue(made.name) THEN
        INSERT INTO daybook.job_wait_checks (queue) VALUES (made.name);
    END IF;
    PERFORM daybook.wake_job_queue(made.fleet);
    RETURN true;
END
$$;
COMMENT ON FUNCTION daybook.set_queue IS
    'Makes a named queue, or gives it these settings: what is null is at its default. At most rate attempts begin in '
    'rate_seconds. What a person sets (set_by) counts until release_queue. Returns whether the settings that count were changed';

-- Gives a queue that a person has set back to the programs: what they have asked for last counts
-- again. Returns whether a person had set it.
CREATE FUNCTION daybook.release_queue(name text) RETURNS boolean
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    held daybook.queues;
BEGIN
    PERFORM daybook.queue_fleet(release_queue.name);
    SELECT u.* INTO held FROM daybook.queues u WHERE u.name = release_queue.name FOR NO KEY UPDATE;
    IF held.set_by IS NULL THEN
        RETURN false;
    END IF;
    UPDATE daybook.queues u SET set_by = NULL, set_at = NULL, declared = NULL, updated_at = clock_timestamp() WHERE u.name = held.name;
    IF held.declared IS NOT NULL THEN
        PERFORM daybook.set_queue(held.name, d.fleet, d.max_parallel, d.rate, d.rate_seconds, d.rate_burst, d.owner, d.per_process)
           FROM jsonb_to_record(held.declared) AS d (fleet text, max_parallel integer, rate integer, rate_seconds double precision, rate_burst integer, owner text,
                                                     per_process integer);
    END IF;
    RETURN true;
END
$$;
COMMENT ON FUNCTION daybook.release_queue IS 'Gives the settings of a queue that a person has set back to the programs';

-- paused: nothing of the queue is leased after the commit; what is leased already is finished.
-- Pausing twice keeps the time of the first. Returns whether something changed.
CREATE FUNCTION daybook.pause_queue(name text, paused boolean DEFAULT true) RETURNS boolean
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    target CONSTANT smallint := daybook.queue_fleet(pause_queue.name);
BEGIN
    UPDATE daybook.queues u
       SET paused_at = CASE WHEN pause_queue.paused THEN clock_timestamp() END, updated_at = clock_timestamp()
     WHERE u.name = pause_queue.name AND (u.paused_at IS NOT NULL) <> pause_queue.paused;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF NOT pause_queue.paused THEN
        PERFORM daybook.wake_job_queue(target);
    END IF;
    RETURN true;
END
$$;
COMMENT ON FUNCTION daybook.pause_queue IS 'Pauses a named queue, or, with false, resumes it';

-- Deletes a queue that has no open jobs.
CREATE FUNCTION daybook.delete_queue(name text) RETURNS void
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    opened bigint;
BEGIN
    PERFORM daybook.queue_fleet(delete_queue.name);
    PERFORM FROM daybook.queues u WHERE u.name = delete_queue.name FOR UPDATE;
    SELECT count(*) INTO opened FROM daybook.jobs j WHERE j.queue = delete_queue.name AND j.state IN ('pending', 'leased');
    IF opened > 0 THEN
        RAISE EXCEPTION 'the queue % has % open jobs', delete_queue.name, opened
            USING ERRCODE = 'DB025', HINT = 'let them be worked, or cancel them, and delete it then';
    END IF;
    DELETE FROM daybook.queues u WHERE u.name = delete_queue.name;
END
$$;
COMMENT ON FUNCTION daybook.delete_queue IS 'Deletes a named queue that has no open jobs';

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.delete_queue, daybook.pause_queue, daybook.release_queue, daybook.set_queue,
    daybook.queue_settings, daybook.move_queue, daybook.queue_uncounted, daybook.queue_fleet, daybook.fleet_of;
DROP TABLE daybook.queue_rates, daybook.queues, daybook.fleets;
