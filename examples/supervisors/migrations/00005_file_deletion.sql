-- Chapter 5: file deletion. One process for each file; its attempts delete the object by the channel file_delete.

-- +goose Up
-- +goose StatementBegin

CREATE TABLE files.file_deletion_task (
    file_deletion_task_id bigserial PRIMARY KEY,
    file_id               bigint NOT NULL UNIQUE REFERENCES files.file,
    created_at            timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE files.file_deletion_attempt (
    file_deletion_attempt_id bigserial PRIMARY KEY,
    file_deletion_task_id    bigint NOT NULL REFERENCES files.file_deletion_task,
    created_at               timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX file_deletion_attempt_task ON files.file_deletion_attempt (file_deletion_task_id);
CREATE TABLE files.file_deletion_task_succeeded (
    file_deletion_task_id bigint PRIMARY KEY REFERENCES files.file_deletion_task,
    created_at            timestamptz NOT NULL DEFAULT now()
);
-- One row for each attempt that failed.
CREATE TABLE files.file_deletion_task_failed (
    file_deletion_attempt_id bigint PRIMARY KEY REFERENCES files.file_deletion_attempt,
    error_message            text,
    created_at               timestamptz NOT NULL DEFAULT now()
);

CREATE FUNCTION files.file_deletion_settings(OUT max_attempts integer, OUT base_interval interval, OUT longest_interval interval, OUT attempt_timeout interval)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT 5, interval '1 minute', interval '1 hour', interval '1 hour'
$$;

CREATE FUNCTION files.has_file_deletion_succeeded_attempt(_file_deletion_task_id bigint) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT EXISTS (SELECT FROM files.file_deletion_task_succeeded s WHERE s.file_deletion_task_id = _file_deletion_task_id)
$$;

CREATE FUNCTION files.count_file_deletion_failed_attempts(_file_deletion_task_id bigint) RETURNS integer
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT count(*)::integer FROM files.file_deletion_attempt a JOIN files.file_deletion_task_failed f USING (file_deletion_attempt_id)
 WHERE a.file_deletion_task_id = _file_deletion_task_id
$$;

CREATE FUNCTION files.count_file_deletion_attempts(_file_deletion_task_id bigint) RETURNS integer
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT count(*)::integer FROM files.file_deletion_attempt a WHERE a.file_deletion_task_id = _file_deletion_task_id
$$;

CREATE FUNCTION files.is_file_deletion_stuck(_file_id bigint) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT EXISTS (SELECT FROM files.file_deletion_task t
                WHERE t.file_id = _file_id
                  AND NOT files.has_file_deletion_succeeded_attempt(t.file_deletion_task_id)
                  AND files.count_file_deletion_failed_attempts(t.file_deletion_task_id) >= (SELECT s.max_attempts FROM files.file_deletion_settings() s))
$$;

CREATE FUNCTION files.is_file_deleted(_file_id bigint) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT EXISTS (SELECT FROM files.file_metadata m WHERE m.file_id = _file_id AND m.metadata @> '{"deleted": true}')
$$;

CREATE FUNCTION files.mark_file_deleted(_file_id bigint) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp
AS $$
INSERT INTO files.file_metadata AS m (file_id, metadata) VALUES (_file_id, '{"deleted": true}')
ON CONFLICT (file_id) DO UPDATE SET metadata = m.metadata || '{"deleted": true}'
$$;

-- Called in the transaction that makes the file superfluous. A second call does nothing: the supervisor is at work already.
CREATE FUNCTION files.kickoff_file_deletion(_file_id bigint, _scheduled_at timestamptz DEFAULT now(), OUT validation_failure_message text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _file_deletion_task_id bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM files.file f WHERE f.file_id = _file_id) OR _file_id IS NULL THEN
        validation_failure_message := format('There is no file %s.', coalesce(_file_id::text, 'null'));
        RETURN;
    END IF;
    INSERT INTO files.file_deletion_task (file_id) VALUES (_file_id)
    ON CONFLICT DO NOTHING RETURNING file_deletion_task_id INTO _file_deletion_task_id;
    IF FOUND THEN
        PERFORM queues.enqueue('db_function', jsonb_build_object(
            'task_type', 'db_function', 'db_function', 'files.file_deletion_supervisor', 'file_deletion_task_id', _file_deletion_task_id), _scheduled_at);
    END IF;
END
$$;

CREATE FUNCTION files.file_deletion_supervisor(_payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '10s'
AS $$
DECLARE
    _file_deletion_task_id    CONSTANT bigint := supervisors.id_of(_payload, 'file_deletion_task_id');
    _settings                 record;
    _file_id                  bigint;
    _num_attempts             integer;
    _num_failures             integer;
    _next_attempt_at          timestamptz;
    _next_check_at            timestamptz;
    _file_deletion_attempt_id bigint;
BEGIN
    IF _file_deletion_task_id IS NULL THEN
        RETURN jsonb_build_object('status', 'missing_file_deletion_task_id');
    END IF;
    SELECT * INTO _settings FROM files.file_deletion_settings();
    BEGIN
        SELECT t.file_id INTO _file_id FROM files.file_deletion_task t WHERE t.file_deletion_task_id = _file_deletion_task_id FOR UPDATE;
        IF NOT FOUND THEN
            RETURN jsonb_build_object('status', 'file_deletion_task_not_found');
        END IF;

        -- Input
        _num_attempts := files.count_file_deletion_attempts(_file_deletion_task_id);
        _num_failures := files.count_file_deletion_failed_attempts(_file_deletion_task_id);
        IF files.has_file_deletion_succeeded_attempt(_file_deletion_task_id) THEN
            RETURN jsonb_build_object('status', 'succeeded');
        ELSIF _num_failures >= _settings.max_attempts THEN
            RETURN jsonb_build_object('status', 'max_attempts_reached');
        END IF;

        -- Compute
        _next_check_at := now() + supervisors.backoff(_settings.base_interval, _settings.longest_interval, _num_failures);
        SELECT max(a.created_at) + supervisors.backoff(_settings.base_interval, _settings.longest_interval, _num_failures - 1) INTO _next_attempt_at
          FROM files.file_deletion_attempt a WHERE a.file_deletion_task_id = _file_deletion_task_id;

        -- Output
        IF _num_attempts > _num_failures THEN
            INSERT INTO files.file_deletion_task_failed (file_deletion_attempt_id, error_message)
            SELECT a.file_deletion_attempt_id, format('no outcome within %s', _settings.attempt_timeout)
              FROM files.file_deletion_attempt a
             WHERE a.file_deletion_task_id = _file_deletion_task_id AND a.created_at < now() - _settings.attempt_timeout
            ON CONFLICT DO NOTHING;
        ELSIF _next_attempt_at > now() THEN
            _next_check_at := _next_attempt_at;
        ELSE
            INSERT INTO files.file_deletion_attempt (file_deletion_task_id) VALUES (_file_deletion_task_id)
            RETURNING file_deletion_attempt_id INTO _file_deletion_attempt_id;
            PERFORM queues.enqueue('file_delete', jsonb_build_object(
                'task_type', 'file_delete', 'file_deletion_task_id', _file_deletion_task_id, 'file_deletion_attempt_id', _file_deletion_attempt_id,
                'file_id', _file_id, 'before_handler', 'files.get_file_delete_payload',
                'success_handler', 'files.record_file_delete_success', 'error_handler', 'files.record_file_delete_failure'));
        END IF;
        PERFORM queues.enqueue('db_function', _payload, _next_check_at);
        RETURN jsonb_build_object('status', 'succeeded');
    EXCEPTION WHEN OTHERS THEN
        PERFORM queues.enqueue('db_function', _payload, now() + _settings.longest_interval);
        RETURN jsonb_build_object('status', 'supervisor_failed', 'error', SQLERRM);
    END;
END
$$;

-- Called before the object is deleted. To delete one twice does no harm, so that all it needs is the file.
CREATE FUNCTION files.get_file_delete_payload(_payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _file_id CONSTANT bigint := supervisors.id_of(_payload, 'file_id');
    _file    files.file;
BEGIN
    SELECT f.* INTO _file FROM files.file f WHERE f.file_id = _file_id;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('status', 'file_not_found', 'success', false,
            'validation_failure_message', format('There is no file %s.', coalesce(_file_id::text, 'null')));
    END IF;
    RETURN jsonb_build_object('status', 'succeeded', 'success', true, 'payload', jsonb_build_object(
        'bucket', _file.bucket, 'object_key', _file.object_key));
END
$$;

CREATE FUNCTION files.record_file_delete_success(_payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _file_deletion_task_id CONSTANT bigint := supervisors.id_of(_payload -> 'original_payload', 'file_deletion_task_id');
    _file_id               bigint;
BEGIN
    SELECT t.file_id INTO _file_id FROM files.file_deletion_task t WHERE t.file_deletion_task_id = _file_deletion_task_id;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('status', 'file_deletion_task_not_found');
    END IF;
    INSERT INTO files.file_deletion_task_succeeded (file_deletion_task_id) VALUES (_file_deletion_task_id) ON CONFLICT DO NOTHING;
    PERFORM files.mark_file_deleted(_file_id);
    RETURN jsonb_build_object('status', 'succeeded');
END
$$;

CREATE FUNCTION files.record_file_delete_failure(_payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _file_deletion_attempt_id CONSTANT bigint := supervisors.id_of(_payload -> 'original_payload', 'file_deletion_attempt_id');
BEGIN
    IF NOT EXISTS (SELECT FROM files.file_deletion_attempt a WHERE a.file_deletion_attempt_id = _file_deletion_attempt_id) THEN
        RETURN jsonb_build_object('status', 'attempt_not_found');
    END IF;
    INSERT INTO files.file_deletion_task_failed (file_deletion_attempt_id, error_message) VALUES (_file_deletion_attempt_id, _payload ->> 'error')
    ON CONFLICT DO NOTHING;
    RETURN jsonb_build_object('status', 'succeeded');
END
$$;

REVOKE ALL ON FUNCTION files.file_deletion_settings, files.has_file_deletion_succeeded_attempt, files.count_file_deletion_failed_attempts,
    files.count_file_deletion_attempts, files.is_file_deletion_stuck, files.is_file_deleted, files.mark_file_deleted, files.kickoff_file_deletion,
    files.file_deletion_supervisor, files.get_file_delete_payload, files.record_file_delete_success, files.record_file_delete_failure FROM PUBLIC;
GRANT USAGE ON SCHEMA files TO worker_service_user;
GRANT EXECUTE ON FUNCTION files.file_deletion_supervisor, files.get_file_delete_payload, files.record_file_delete_success,
    files.record_file_delete_failure TO worker_service_user;

-- +goose StatementEnd
