-- Chapter 2: send_email. One process for each message; its attempts send by the channel email.

-- +goose Up
-- +goose StatementBegin

CREATE SCHEMA IF NOT EXISTS comms;

CREATE TABLE comms.email_message (
    email_message_id bigserial PRIMARY KEY,
    to_address       text NOT NULL,
    subject          text NOT NULL,
    body             text NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE comms.send_email_task (
    send_email_task_id bigserial PRIMARY KEY,
    email_message_id   bigint NOT NULL UNIQUE REFERENCES comms.email_message,
    created_at         timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE comms.send_email_attempt (
    send_email_attempt_id bigserial PRIMARY KEY,
    send_email_task_id    bigint NOT NULL REFERENCES comms.send_email_task,
    created_at            timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX send_email_attempt_task ON comms.send_email_attempt (send_email_task_id);
CREATE TABLE comms.send_email_attempt_succeeded (
    send_email_attempt_id bigint PRIMARY KEY REFERENCES comms.send_email_attempt,
    created_at            timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE comms.send_email_attempt_failed (
    send_email_attempt_id bigint PRIMARY KEY REFERENCES comms.send_email_attempt,
    error_message         text,
    created_at            timestamptz NOT NULL DEFAULT now()
);

-- Replace it to change how often and when is tried: CREATE OR REPLACE FUNCTION keeps its grants.
CREATE FUNCTION comms.send_email_settings(OUT max_attempts integer, OUT base_interval interval, OUT longest_interval interval, OUT attempt_timeout interval)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT 5, interval '1 minute', interval '1 hour', interval '1 hour'
$$;
COMMENT ON FUNCTION comms.send_email_settings IS 'attempt_timeout: after that time an attempt without an outcome counts as failed';

CREATE FUNCTION comms.has_send_email_succeeded_attempt(_send_email_task_id bigint) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT EXISTS (SELECT FROM comms.send_email_attempt a JOIN comms.send_email_attempt_succeeded s USING (send_email_attempt_id)
                WHERE a.send_email_task_id = _send_email_task_id)
$$;

CREATE FUNCTION comms.count_send_email_failed_attempts(_send_email_task_id bigint) RETURNS integer
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT count(*)::integer FROM comms.send_email_attempt a JOIN comms.send_email_attempt_failed f USING (send_email_attempt_id)
 WHERE a.send_email_task_id = _send_email_task_id
$$;

CREATE FUNCTION comms.count_send_email_attempts(_send_email_task_id bigint) RETURNS integer
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT count(*)::integer FROM comms.send_email_attempt a WHERE a.send_email_task_id = _send_email_task_id
$$;

CREATE FUNCTION comms.is_send_email_stuck(_email_message_id bigint) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT EXISTS (SELECT FROM comms.send_email_task t
                WHERE t.email_message_id = _email_message_id
                  AND NOT comms.has_send_email_succeeded_attempt(t.send_email_task_id)
                  AND comms.count_send_email_failed_attempts(t.send_email_task_id) >= (SELECT s.max_attempts FROM comms.send_email_settings() s))
$$;

-- Called in the transaction that makes the message necessary. A second call does nothing: the supervisor is at work already.
CREATE FUNCTION comms.kickoff_send_email(_email_message_id bigint, _scheduled_at timestamptz DEFAULT now(), OUT validation_failure_message text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _to_address         text;
    _send_email_task_id bigint;
BEGIN
    SELECT m.to_address INTO _to_address FROM comms.email_message m WHERE m.email_message_id = _email_message_id;
    IF NOT FOUND THEN
        validation_failure_message := format('There is no email message %s.', coalesce(_email_message_id::text, 'null'));
        RETURN;
    ELSIF _to_address !~ '^[^@[:space:]]+@[^@[:space:]]+$' THEN
        validation_failure_message := format('Email message %s has no address like name@example.com.', _email_message_id);
        RETURN;
    END IF;
    INSERT INTO comms.send_email_task (email_message_id) VALUES (_email_message_id)
    ON CONFLICT DO NOTHING RETURNING send_email_task_id INTO _send_email_task_id;
    IF FOUND THEN
        PERFORM queues.enqueue('db_function', jsonb_build_object(
            'task_type', 'db_function', 'db_function', 'comms.send_email_supervisor', 'send_email_task_id', _send_email_task_id), _scheduled_at);
    END IF;
END
$$;

CREATE FUNCTION comms.send_email_supervisor(_payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '10s'
AS $$
DECLARE
    _send_email_task_id    CONSTANT bigint := supervisors.id_of(_payload, 'send_email_task_id');
    _settings              record;
    _num_attempts          integer;
    _num_failures          integer;
    _next_attempt_at       timestamptz;
    _next_check_at         timestamptz;
    _send_email_attempt_id bigint;
BEGIN
    IF _send_email_task_id IS NULL THEN
        RETURN jsonb_build_object('status', 'missing_send_email_task_id');
    END IF;
    SELECT * INTO _settings FROM comms.send_email_settings();
    BEGIN
        -- One supervisor of a process at a time: another one waits here, and then sees what this one did.
        PERFORM FROM comms.send_email_task t WHERE t.send_email_task_id = _send_email_task_id FOR UPDATE;
        IF NOT FOUND THEN
            RETURN jsonb_build_object('status', 'send_email_task_not_found');
        END IF;

        -- Input
        _num_attempts := comms.count_send_email_attempts(_send_email_task_id);
        _num_failures := comms.count_send_email_failed_attempts(_send_email_task_id);
        IF comms.has_send_email_succeeded_attempt(_send_email_task_id) THEN
            RETURN jsonb_build_object('status', 'succeeded');
        ELSIF _num_failures >= _settings.max_attempts THEN
            RETURN jsonb_build_object('status', 'max_attempts_reached');
        END IF;

        -- Compute: the first attempt at once, and a next one when the pause since the last one is over.
        _next_check_at := now() + supervisors.backoff(_settings.base_interval, _settings.longest_interval, _num_failures);
        SELECT max(a.created_at) + supervisors.backoff(_settings.base_interval, _settings.longest_interval, _num_failures - 1) INTO _next_attempt_at
          FROM comms.send_email_attempt a WHERE a.send_email_task_id = _send_email_task_id;

        -- Output
        IF _num_attempts > _num_failures THEN
            -- One is outstanding. One that never gets an outcome counts as failed in the end, and the next one comes at the next check.
            INSERT INTO comms.send_email_attempt_failed (send_email_attempt_id, error_message)
            SELECT a.send_email_attempt_id, format('no outcome within %s', _settings.attempt_timeout)
              FROM comms.send_email_attempt a
             WHERE a.send_email_task_id = _send_email_task_id AND a.created_at < now() - _settings.attempt_timeout
            ON CONFLICT DO NOTHING;
        ELSIF _next_attempt_at > now() THEN
            _next_check_at := _next_attempt_at;
        ELSE
            INSERT INTO comms.send_email_attempt (send_email_task_id) VALUES (_send_email_task_id)
            RETURNING send_email_attempt_id INTO _send_email_attempt_id;
            PERFORM queues.enqueue('email', jsonb_build_object(
                'task_type', 'email', 'send_email_attempt_id', _send_email_attempt_id, 'before_handler', 'comms.get_email_payload',
                'success_handler', 'comms.record_email_success', 'error_handler', 'comms.record_email_failure'));
        END IF;
        PERFORM queues.enqueue('db_function', _payload, _next_check_at);
        RETURN jsonb_build_object('status', 'succeeded');
    EXCEPTION WHEN OTHERS THEN
        -- What was done above is undone. The process goes on: a task is never worked again, so this supervisor enqueues its next run.
        PERFORM queues.enqueue('db_function', _payload, now() + _settings.longest_interval);
        RETURN jsonb_build_object('status', 'supervisor_failed', 'error', SQLERRM);
    END;
END
$$;

-- Called before the message is sent. An attempt that has an outcome is not worked again.
CREATE FUNCTION comms.get_email_payload(_payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _send_email_attempt_id CONSTANT bigint := supervisors.id_of(_payload, 'send_email_attempt_id');
    _message               comms.email_message;
BEGIN
    SELECT m.* INTO _message
      FROM comms.send_email_attempt a JOIN comms.send_email_task t USING (send_email_task_id) JOIN comms.email_message m USING (email_message_id)
     WHERE a.send_email_attempt_id = _send_email_attempt_id
       AND NOT EXISTS (SELECT FROM comms.send_email_attempt_succeeded s WHERE s.send_email_attempt_id = a.send_email_attempt_id)
       AND NOT EXISTS (SELECT FROM comms.send_email_attempt_failed f WHERE f.send_email_attempt_id = a.send_email_attempt_id);
    IF NOT FOUND THEN
        RETURN jsonb_build_object('status', 'attempt_not_open');
    END IF;
    RETURN jsonb_build_object('status', 'succeeded', 'success', true, 'payload', jsonb_build_object(
        'to_address', _message.to_address, 'subject', _message.subject, 'text', _message.body));
END
$$;

CREATE FUNCTION comms.record_email_success(_payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _send_email_attempt_id CONSTANT bigint := supervisors.id_of(_payload -> 'original_payload', 'send_email_attempt_id');
BEGIN
    IF NOT EXISTS (SELECT FROM comms.send_email_attempt a WHERE a.send_email_attempt_id = _send_email_attempt_id) THEN
        RETURN jsonb_build_object('status', 'attempt_not_found');
    END IF;
    INSERT INTO comms.send_email_attempt_succeeded (send_email_attempt_id) VALUES (_send_email_attempt_id) ON CONFLICT DO NOTHING;
    RETURN jsonb_build_object('status', 'succeeded');
END
$$;

CREATE FUNCTION comms.record_email_failure(_payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _send_email_attempt_id CONSTANT bigint := supervisors.id_of(_payload -> 'original_payload', 'send_email_attempt_id');
BEGIN
    IF NOT EXISTS (SELECT FROM comms.send_email_attempt a WHERE a.send_email_attempt_id = _send_email_attempt_id) THEN
        RETURN jsonb_build_object('status', 'attempt_not_found');
    END IF;
    -- A success that is on record stays the outcome.
    INSERT INTO comms.send_email_attempt_failed (send_email_attempt_id, error_message)
    SELECT _send_email_attempt_id, _payload ->> 'error'
     WHERE NOT EXISTS (SELECT FROM comms.send_email_attempt_succeeded s WHERE s.send_email_attempt_id = _send_email_attempt_id)
    ON CONFLICT DO NOTHING;
    RETURN jsonb_build_object('status', 'succeeded');
END
$$;

REVOKE ALL ON FUNCTION comms.send_email_settings, comms.has_send_email_succeeded_attempt, comms.count_send_email_failed_attempts,
    comms.count_send_email_attempts, comms.is_send_email_stuck, comms.kickoff_send_email, comms.send_email_supervisor, comms.get_email_payload,
    comms.record_email_success, comms.record_email_failure FROM PUBLIC;
GRANT USAGE ON SCHEMA comms TO worker_service_user;
GRANT EXECUTE ON FUNCTION comms.send_email_supervisor, comms.get_email_payload, comms.record_email_success, comms.record_email_failure
    TO worker_service_user;

-- +goose StatementEnd
