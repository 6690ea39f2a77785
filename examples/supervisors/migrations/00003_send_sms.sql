-- Chapter 3: send_sms, as send_email, by the channel sms.

-- +goose Up
-- +goose StatementBegin

CREATE TABLE comms.sms_message (
    sms_message_id bigserial PRIMARY KEY,
    to_number      text NOT NULL,
    body           text NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE comms.send_sms_task (
    send_sms_task_id bigserial PRIMARY KEY,
    sms_message_id   bigint NOT NULL UNIQUE REFERENCES comms.sms_message,
    created_at       timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE comms.send_sms_attempt (
    send_sms_attempt_id bigserial PRIMARY KEY,
    send_sms_task_id    bigint NOT NULL REFERENCES comms.send_sms_task,
    created_at          timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX send_sms_attempt_task ON comms.send_sms_attempt (send_sms_task_id);
CREATE TABLE comms.send_sms_attempt_succeeded (
    send_sms_attempt_id bigint PRIMARY KEY REFERENCES comms.send_sms_attempt,
    created_at          timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE comms.send_sms_attempt_failed (
    send_sms_attempt_id bigint PRIMARY KEY REFERENCES comms.send_sms_attempt,
    error_message       text,
    created_at          timestamptz NOT NULL DEFAULT now()
);

-- Replace it to change how often and when is tried: CREATE OR REPLACE FUNCTION keeps its grants.
CREATE FUNCTION comms.send_sms_settings(OUT max_attempts integer, OUT base_interval interval, OUT longest_interval interval, OUT attempt_timeout interval)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT 5, interval '1 minute', interval '1 hour', interval '1 hour'
$$;
COMMENT ON FUNCTION comms.send_sms_settings IS 'attempt_timeout: after that time an attempt without an outcome counts as failed';

CREATE FUNCTION comms.has_send_sms_succeeded_attempt(_send_sms_task_id bigint) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT EXISTS (SELECT FROM comms.send_sms_attempt a JOIN comms.send_sms_attempt_succeeded s USING (send_sms_attempt_id)
                WHERE a.send_sms_task_id = _send_sms_task_id)
$$;

CREATE FUNCTION comms.count_send_sms_failed_attempts(_send_sms_task_id bigint) RETURNS integer
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT count(*)::integer FROM comms.send_sms_attempt a JOIN comms.send_sms_attempt_failed f USING (send_sms_attempt_id)
 WHERE a.send_sms_task_id = _send_sms_task_id
$$;

CREATE FUNCTION comms.count_send_sms_attempts(_send_sms_task_id bigint) RETURNS integer
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT count(*)::integer FROM comms.send_sms_attempt a WHERE a.send_sms_task_id = _send_sms_task_id
$$;

CREATE FUNCTION comms.is_send_sms_stuck(_sms_message_id bigint) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT EXISTS (SELECT FROM comms.send_sms_task t
                WHERE t.sms_message_id = _sms_message_id
                  AND NOT comms.has_send_sms_succeeded_attempt(t.send_sms_task_id)
                  AND comms.count_send_sms_failed_attempts(t.send_sms_task_id) >= (SELECT s.max_attempts FROM comms.send_sms_settings() s))
$$;

-- Called in the transaction that makes the message necessary. A second call does nothing: the supervisor is at work already.
CREATE FUNCTION comms.kickoff_send_sms(_sms_message_id bigint, _scheduled_at timestamptz DEFAULT now(), OUT validation_failure_message text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _to_number        text;
    _send_sms_task_id bigint;
BEGIN
    SELECT m.to_number INTO _to_number FROM comms.sms_message m WHERE m.sms_message_id = _sms_message_id;
    IF NOT FOUND THEN
        validation_failure_message := format('There is no text message %s.', coalesce(_sms_message_id::text, 'null'));
        RETURN;
    ELSIF _to_number !~ '^[+][1-9][0-9]{6,14}$' THEN
        validation_failure_message := format('Text message %s has no number like +4915112345678.', _sms_message_id);
        RETURN;
    END IF;
    INSERT INTO comms.send_sms_task (sms_message_id) VALUES (_sms_message_id)
    ON CONFLICT DO NOTHING RETURNING send_sms_task_id INTO _send_sms_task_id;
    IF FOUND THEN
        PERFORM queues.enqueue('db_function', jsonb_build_object(
            'task_type', 'db_function', 'db_function', 'comms.send_sms_supervisor', 'send_sms_task_id', _send_sms_task_id), _scheduled_at);
    END IF;
END
$$;

CREATE FUNCTION comms.send_sms_supervisor(_payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '10s'
AS $$
DECLARE
    _send_sms_task_id    CONSTANT bigint := supervisors.id_of(_payload, 'send_sms_task_id');
    _settings            record;
    _num_attempts        integer;
    _num_failures        integer;
    _next_attempt_at     timestamptz;
    _next_check_at       timestamptz;
    _send_sms_attempt_id bigint;
BEGIN
    IF _send_sms_task_id IS NULL THEN
        RETURN jsonb_build_object('status', 'missing_send_sms_task_id');
    END IF;
    SELECT * INTO _settings FROM comms.send_sms_settings();
    BEGIN
        -- One supervisor of a process at a time: another one waits here, and then sees what this one did.
        PERFORM FROM comms.send_sms_task t WHERE t.send_sms_task_id = _send_sms_task_id FOR UPDATE;
        IF NOT FOUND THEN
            RETURN jsonb_build_object('status', 'send_sms_task_not_found');
        END IF;

        -- Input
        _num_attempts := comms.count_send_sms_attempts(_send_sms_task_id);
        _num_failures := comms.count_send_sms_failed_attempts(_send_sms_task_id);
        IF comms.has_send_sms_succeeded_attempt(_send_sms_task_id) THEN
            RETURN jsonb_build_object('status', 'succeeded');
        ELSIF _num_failures >= _settings.max_attempts THEN
            RETURN jsonb_build_object('status', 'max_attempts_reached');
        END IF;

        -- Compute: the first attempt at once, and a next one when the pause since the last one is over.
        _next_check_at := now() + supervisors.backoff(_settings.base_interval, _settings.longest_interval, _num_failures);
        SELECT max(a.created_at) + supervisors.backoff(_settings.base_interval, _settings.longest_interval, _num_failures - 1) INTO _next_attempt_at
          FROM comms.send_sms_attempt a WHERE a.send_sms_task_id = _send_sms_task_id;

        -- Output
        IF _num_attempts > _num_failures THEN
            -- One is outstanding. One that never gets an outcome counts as failed in the end, and the next one comes at the next check.
            INSERT INTO comms.send_sms_attempt_failed (send_sms_attempt_id, error_message)
            SELECT a.send_sms_attempt_id, format('no outcome within %s', _settings.attempt_timeout)
              FROM comms.send_sms_attempt a
             WHERE a.send_sms_task_id = _send_sms_task_id AND a.created_at < now() - _settings.attempt_timeout
            ON CONFLICT DO NOTHING;
        ELSIF _next_attempt_at > now() THEN
            _next_check_at := _next_attempt_at;
        ELSE
            INSERT INTO comms.send_sms_attempt (send_sms_task_id) VALUES (_send_sms_task_id)
            RETURNING send_sms_attempt_id INTO _send_sms_attempt_id;
            PERFORM queues.enqueue('sms', jsonb_build_object(
                'task_type', 'sms', 'send_sms_attempt_id', _send_sms_attempt_id, 'before_handler', 'comms.get_sms_payload',
                'success_handler', 'comms.record_sms_success', 'error_handler', 'comms.record_sms_failure'));
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
CREATE FUNCTION comms.get_sms_payload(_payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _send_sms_attempt_id CONSTANT bigint := supervisors.id_of(_payload, 'send_sms_attempt_id');
    _message             comms.sms_message;
BEGIN
    SELECT m.* INTO _message
      FROM comms.send_sms_attempt a JOIN comms.send_sms_task t USING (send_sms_task_id) JOIN comms.sms_message m USING (sms_message_id)
     WHERE a.send_sms_attempt_id = _send_sms_attempt_id
       AND NOT EXISTS (SELECT FROM comms.send_sms_attempt_succeeded s WHERE s.send_sms_attempt_id = a.send_sms_attempt_id)
       AND NOT EXISTS (SELECT FROM comms.send_sms_attempt_failed f WHERE f.send_sms_attempt_id = a.send_sms_attempt_id);
    IF NOT FOUND THEN
        RETURN jsonb_build_object('status', 'attempt_not_open');
    END IF;
    RETURN jsonb_build_object('status', 'succeeded', 'success', true, 'payload', jsonb_build_object(
        'to_number', _message.to_number, 'body', _message.body));
END
$$;

CREATE FUNCTION comms.record_sms_success(_payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _send_sms_attempt_id CONSTANT bigint := supervisors.id_of(_payload -> 'original_payload', 'send_sms_attempt_id');
BEGIN
    IF NOT EXISTS (SELECT FROM comms.send_sms_attempt a WHERE a.send_sms_attempt_id = _send_sms_attempt_id) THEN
        RETURN jsonb_build_object('status', 'attempt_not_found');
    END IF;
    INSERT INTO comms.send_sms_attempt_succeeded (send_sms_attempt_id) VALUES (_send_sms_attempt_id) ON CONFLICT DO NOTHING;
    RETURN jsonb_build_object('status', 'succeeded');
END
$$;

CREATE FUNCTION comms.record_sms_failure(_payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _send_sms_attempt_id CONSTANT bigint := supervisors.id_of(_payload -> 'original_payload', 'send_sms_attempt_id');
BEGIN
    IF NOT EXISTS (SELECT FROM comms.send_sms_attempt a WHERE a.send_sms_attempt_id = _send_sms_attempt_id) THEN
        RETURN jsonb_build_object('status', 'attempt_not_found');
    END IF;
    -- A success that is on record stays the outcome.
    INSERT INTO comms.send_sms_attempt_failed (send_sms_attempt_id, error_message)
    SELECT _send_sms_attempt_id, _payload ->> 'error'
     WHERE NOT EXISTS (SELECT FROM comms.send_sms_attempt_succeeded s WHERE s.send_sms_attempt_id = _send_sms_attempt_id)
    ON CONFLICT DO NOTHING;
    RETURN jsonb_build_object('status', 'succeeded');
END
$$;

REVOKE ALL ON FUNCTION comms.send_sms_settings, comms.has_send_sms_succeeded_attempt, comms.count_send_sms_failed_attempts,
    comms.count_send_sms_attempts, comms.is_send_sms_stuck, comms.kickoff_send_sms, comms.send_sms_supervisor, comms.get_sms_payload,
    comms.record_sms_success, comms.record_sms_failure FROM PUBLIC;
GRANT EXECUTE ON FUNCTION comms.send_sms_supervisor, comms.get_sms_payload, comms.record_sms_success, comms.record_sms_failure
    TO worker_service_user;

-- +goose StatementEnd
