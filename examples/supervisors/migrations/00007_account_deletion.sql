-- Chapter 7: account deletion. Its supervisor starts other processes and waits for them: first each file's deletion, then the account's
-- anonymization. It has no attempts of its own.

-- +goose Up
-- +goose StatementBegin

CREATE TABLE accounts.account_deletion_task (
    account_deletion_task_id bigserial PRIMARY KEY,
    account_id               bigint NOT NULL UNIQUE REFERENCES accounts.account,
    created_at               timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE accounts.account_deletion_task_succeeded (
    account_deletion_task_id bigint PRIMARY KEY REFERENCES accounts.account_deletion_task,
    created_at               timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE accounts.account_deletion_task_failed (
    account_deletion_task_id bigint PRIMARY KEY REFERENCES accounts.account_deletion_task,
    error_message            text NOT NULL,
    created_at               timestamptz NOT NULL DEFAULT now()
);

-- It looks after base_interval, and then at twice the age that the process has, up to longest_interval later.
CREATE FUNCTION accounts.account_deletion_settings(OUT base_interval interval, OUT longest_interval interval)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT interval '1 minute', interval '1 hour'
$$;

CREATE FUNCTION accounts.is_account_anonymized(_account_id bigint) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT EXISTS (SELECT FROM accounts.account_flag f WHERE f.account_id = _account_id AND f.flag = 'anonymized')
$$;

-- Called in the transaction that marks the account. A second call does nothing: the supervisor is at work already.
CREATE FUNCTION accounts.kickoff_account_deletion(_account_id bigint, _scheduled_at timestamptz DEFAULT now(), OUT validation_failure_message text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _account_deletion_task_id bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM accounts.account a WHERE a.account_id = _account_id) THEN
        validation_failure_message := format('There is no account %s.', coalesce(_account_id::text, 'null'));
        RETURN;
    END IF;
    INSERT INTO accounts.account_deletion_task (account_id) VALUES (_account_id)
    ON CONFLICT DO NOTHING RETURNING account_deletion_task_id INTO _account_deletion_task_id;
    IF FOUND THEN
        PERFORM queues.enqueue('db_function', jsonb_build_object(
            'task_type', 'db_function', 'db_function', 'accounts.account_deletion_supervisor',
            'account_deletion_task_id', _account_deletion_task_id), _scheduled_at);
    END IF;
END
$$;

CREATE FUNCTION accounts.account_deletion_supervisor(_payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '10s'
AS $$
DECLARE
    _account_deletion_task_id CONSTANT bigint := supervisors.id_of(_payload, 'account_deletion_task_id');
    _settings                 record;
    _task                     accounts.account_deletion_task;
    _stuck_file_id            bigint;
    _error_message            text;
BEGIN
    IF _account_deletion_task_id IS NULL THEN
        RETURN jsonb_build_object('status', 'missing_account_deletion_task_id');
    END IF;
    SELECT * INTO _settings FROM accounts.account_deletion_settings();
    BEGIN
        SELECT t.* INTO _task FROM accounts.account_deletion_task t WHERE t.account_deletion_task_id = _account_deletion_task_id FOR UPDATE;
        IF NOT FOUND THEN
            RETURN jsonb_build_object('status', 'account_deletion_task_not_found');
        END IF;

        -- Input
        IF EXISTS (SELECT FROM accounts.account_deletion_task_succeeded s WHERE s.account_deletion_task_id = _account_deletion_task_id) THEN
            RETURN jsonb_build_object('status', 'succeeded');
        ELSIF EXISTS (SELECT FROM accounts.account_deletion_task_failed f WHERE f.account_deletion_task_id = _account_deletion_task_id) THEN
            RETURN jsonb_build_object('status', 'account_deletion_failed');
        END IF;
        SELECT min(f.file_id) INTO _stuck_file_id FROM files.file f WHERE f.account_id = _task.account_id AND files.is_file_deletion_stuck(f.file_id);

        -- Compute and output
        IF _stuck_file_id IS NOT NULL THEN
            _error_message := format('The deletion of file %s is stuck.', _stuck_file_id);
        ELSIF EXISTS (SELECT FROM files.file f WHERE f.account_id = _task.account_id AND NOT files.is_file_deleted(f.file_id)) THEN
            PERFORM files.kickoff_file_deletion(f.file_id)
               FROM files.file f
              WHERE f.account_id = _task.account_id AND NOT files.is_file_deleted(f.file_id)
                AND NOT EXISTS (SELECT FROM files.file_deletion_task t WHERE t.file_id = f.file_id);
        ELSIF accounts.is_account_anonymized(_task.account_id) THEN
            INSERT INTO accounts.account_deletion_task_succeeded (account_deletion_task_id) VALUES (_account_deletion_task_id);
            RETURN jsonb_build_object('status', 'succeeded');
        ELSIF accounts.is_account_anonymization_stuck(_task.account_id) THEN
            _error_message := format('The anonymization of account %s is stuck.', _task.account_id);
        ELSE
            PERFORM accounts.kickoff_account_anonymization(_task.account_id);
        END IF;
        IF _error_message IS NOT NULL THEN
            INSERT INTO accounts.account_deletion_task_failed (account_deletion_task_id, error_message) VALUES (_account_deletion_task_id, _error_message);
            RETURN jsonb_build_object('status', 'account_deletion_failed', 'error', _error_message);
        END IF;
        PERFORM queues.enqueue('db_function', _payload, now() + least(greatest(_settings.base_interval, now() - _task.created_at), _settings.longest_interval));
        RETURN jsonb_build_object('status', 'succeeded');
    EXCEPTION WHEN OTHERS THEN
        PERFORM queues.enqueue('db_function', _payload, now() + _settings.longest_interval);
        RETURN jsonb_build_object('status', 'supervisor_failed', 'error', SQLERRM);
    END;
END
$$;

-- What the application calls when a person wants to be forgotten.
CREATE FUNCTION api.request_account_deletion(_account_id bigint, OUT validation_failure_message text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- An upload that is being completed ends before, and what it adds is deleted as well.
    PERFORM FROM accounts.account a WHERE a.account_id = _account_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        validation_failure_message := format('There is no account %s.', coalesce(_account_id::text, 'null'));
        RETURN;
    END IF;
    INSERT INTO accounts.account_flag (account_id, flag) VALUES (_account_id, 'deleted') ON CONFLICT DO NOTHING;
    validation_failure_message := accounts.kickoff_account_deletion(_account_id);
END
$$;

REVOKE ALL ON FUNCTION accounts.account_deletion_settings, accounts.is_account_anonymized, accounts.kickoff_account_deletion,
    accounts.account_deletion_supervisor, api.request_account_deletion FROM PUBLIC;
GRANT EXECUTE ON FUNCTION accounts.account_deletion_supervisor TO worker_service_user;

-- +goose StatementEnd
