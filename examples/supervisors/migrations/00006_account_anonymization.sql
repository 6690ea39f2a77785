-- Chapter 6: account anonymization. Its attempts are pure SQL: a db_function, which the supervisor enqueues for each.

-- +goose Up
-- +goose StatementBegin

CREATE TABLE accounts.account_anonymization_task (
    account_anonymization_task_id bigserial PRIMARY KEY,
    account_id                    bigint NOT NULL UNIQUE REFERENCES accounts.account,
    created_at                    timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE accounts.account_anonymization_attempt (
    account_anonymization_attempt_id bigserial PRIMARY KEY,
    account_anonymization_task_id    bigint NOT NULL REFERENCES accounts.account_anonymization_task,
    created_at                       timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX account_anonymization_attempt_task ON accounts.account_anonymization_attempt (account_anonymization_task_id);
CREATE TABLE accounts.account_anonymization_task_succeeded (
    account_anonymization_task_id bigint PRIMARY KEY REFERENCES accounts.account_anonymization_task,
    created_at                    timestamptz NOT NULL DEFAULT now()
);
-- One row for each attempt that failed.
CREATE TABLE accounts.account_anonymization_task_failed (
    account_anonymization_attempt_id bigint PRIMARY KEY REFERENCES accounts.account_anonymization_attempt,
    error_message                    text,
    created_at                       timestamptz NOT NULL DEFAULT now()
);

CREATE FUNCTION accounts.account_anonymization_settings(OUT max_attempts integer, OUT base_interval interval, OUT longest_interval interval,
                                                        OUT attempt_timeout interval)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT 5, interval '1 minute', interval '1 hour', interval '1 hour'
$$;

CREATE FUNCTION accounts.has_account_anonymization_succeeded_attempt(_account_anonymization_task_id bigint) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT EXISTS (SELECT FROM accounts.account_anonymization_task_succeeded s WHERE s.account_anonymization_task_id = _account_anonymization_task_id)
$$;

CREATE FUNCTION accounts.count_account_anonymization_failed_attempts(_account_anonymization_task_id bigint) RETURNS integer
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT count(*)::integer
  FROM accounts.account_anonymization_attempt a JOIN accounts.account_anonymization_task_failed f USING (account_anonymization_attempt_id)
 WHERE a.account_anonymization_task_id = _account_anonymization_task_id
$$;

CREATE FUNCTION accounts.count_account_anonymization_attempts(_account_anonymization_task_id bigint) RETURNS integer
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT count(*)::integer FROM accounts.account_anonymization_attempt a WHERE a.account_anonymization_task_id = _account_anonymization_task_id
$$;

CREATE FUNCTION accounts.is_account_anonymization_stuck(_account_id bigint) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT EXISTS (SELECT FROM accounts.account_anonymization_task t
                WHERE t.account_id = _account_id
                  AND NOT accounts.has_account_anonymization_succeeded_attempt(t.account_anonymization_task_id)
                  AND accounts.count_account_anonymization_failed_attempts(t.account_anonymization_task_id)
                      >= (SELECT s.max_attempts FROM accounts.account_anonymization_settings() s))
$$;

-- What makes an account anonymous. A second call does nothing more.
CREATE FUNCTION accounts.anonymize_account(_account_id bigint) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp
AS $$
UPDATE accounts.account SET name = 'Deleted account', email = NULL WHERE account_id = _account_id;
UPDATE accounts.profile SET display_name = 'Deleted profile' WHERE account_id = _account_id;
INSERT INTO accounts.account_flag (account_id, flag) VALUES (_account_id, 'anonymized') ON CONFLICT DO NOTHING;
$$;

-- Called in the transaction that makes it necessary. A second call does nothing: the supervisor is at work already.
CREATE FUNCTION accounts.kickoff_account_anonymization(_account_id bigint, _scheduled_at timestamptz DEFAULT now(), OUT validation_failure_message text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _account_anonymization_task_id bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM accounts.account a WHERE a.account_id = _account_id) THEN
        validation_failure_message := format('There is no account %s.', coalesce(_account_id::text, 'null'));
        RETURN;
    END IF;
    INSERT INTO accounts.account_anonymization_task (account_id) VALUES (_account_id)
    ON CONFLICT DO NOTHING RETURNING account_anonymization_task_id INTO _account_anonymization_task_id;
    IF FOUND THEN
        PERFORM queues.enqueue('db_function', jsonb_build_object(
            'task_type', 'db_function', 'db_function', 'accounts.account_anonymization_supervisor',
            'account_anonymization_task_id', _account_anonymization_task_id), _scheduled_at);
    END IF;
END
$$;

CREATE FUNCTION accounts.account_anonymization_supervisor(_payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '10s'
AS $$
DECLARE
    _account_anonymization_task_id    CONSTANT bigint := supervisors.id_of(_payload, 'account_anonymization_task_id');
    _settings                         record;
    _num_attempts                     integer;
    _num_failures                     integer;
    _next_attempt_at                  timestamptz;
    _next_check_at                    timestamptz;
    _account_anonymization_attempt_id bigint;
BEGIN
    IF _account_anonymization_task_id IS NULL THEN
        RETURN jsonb_build_object('status', 'missing_account_anonymization_task_id');
    END IF;
    SELECT * INTO _settings FROM accounts.account_anonymization_settings();
    BEGIN
        PERFORM FROM accounts.account_anonymization_task t WHERE t.account_anonymization_task_id = _account_anonymization_task_id FOR UPDATE;
        IF NOT FOUND THEN
            RETURN jsonb_build_object('status', 'account_anonymization_task_not_found');
        END IF;

        -- Input
        _num_attempts := accounts.count_account_anonymization_attempts(_account_anonymization_task_id);
        _num_failures := accounts.count_account_anonymization_failed_attempts(_account_anonymization_task_id);
        IF accounts.has_account_anonymization_succeeded_attempt(_account_anonymization_task_id) THEN
            RETURN jsonb_build_object('status', 'succeeded');
        ELSIF _num_failures >= _settings.max_attempts THEN
            RETURN jsonb_build_object('status', 'max_attempts_reached');
        END IF;

        -- Compute
        _next_check_at := now() + supervisors.backoff(_settings.base_interval, _settings.longest_interval, _num_failures);
        SELECT max(a.created_at) + supervisors.backoff(_settings.base_interval, _settings.longest_interval, _num_failures - 1) INTO _next_attempt_at
          FROM accounts.account_anonymization_attempt a WHERE a.account_anonymization_task_id = _account_anonymization_task_id;

        -- Output
        IF _num_attempts > _num_failures THEN
            INSERT INTO accounts.account_anonymization_task_failed (account_anonymization_attempt_id, error_message)
            SELECT a.account_anonymization_attempt_id, format('no outcome within %s', _settings.attempt_timeout)
              FROM accounts.account_anonymization_attempt a
             WHERE a.account_anonymization_task_id = _account_anonymization_task_id AND a.created_at < now() - _settings.attempt_timeout
            ON CONFLICT DO NOTHING;
        ELSIF _next_attempt_at > now() THEN
            _next_check_at := _next_attempt_at;
        ELSE
            INSERT INTO accounts.account_anonymization_attempt (account_anonymization_task_id) VALUES (_account_anonymization_task_id)
            RETURNING account_anonymization_attempt_id INTO _account_anonymization_attempt_id;
            PERFORM queues.enqueue('db_function', jsonb_build_object(
                'task_type', 'db_function', 'db_function', 'accounts.perform_account_anonymization',
                'account_anonymization_attempt_id', _account_anonymization_attempt_id));
        END IF;
        PERFORM queues.enqueue('db_function', _payload, _next_check_at);
        RETURN jsonb_build_object('status', 'succeeded');
    EXCEPTION WHEN OTHERS THEN
        PERFORM queues.enqueue('db_function', _payload, now() + _settings.longest_interval);
        RETURN jsonb_build_object('status', 'supervisor_failed', 'error', SQLERRM);
    END;
END
$$;

-- One attempt, with its outcome: the account is anonymous and that is on record, or the failure is.
CREATE FUNCTION accounts.perform_account_anonymization(_payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _account_anonymization_attempt_id CONSTANT bigint := supervisors.id_of(_payload, 'account_anonymization_attempt_id');
    _task                             accounts.account_anonymization_task;
BEGIN
    SELECT t.* INTO _task
      FROM accounts.account_anonymization_attempt a JOIN accounts.account_anonymization_task t USING (account_anonymization_task_id)
     WHERE a.account_anonymization_attempt_id = _account_anonymization_attempt_id
       AND NOT EXISTS (SELECT FROM accounts.account_anonymization_task_succeeded s
                        WHERE s.account_anonymization_task_id = t.account_anonymization_task_id)
       AND NOT EXISTS (SELECT FROM accounts.account_anonymization_task_failed f
                        WHERE f.account_anonymization_attempt_id = a.account_anonymization_attempt_id);
    IF NOT FOUND THEN
        RETURN jsonb_build_object('status', 'attempt_not_open');
    END IF;
    BEGIN
        PERFORM accounts.anonymize_account(_task.account_id);
        INSERT INTO accounts.account_anonymization_task_succeeded (account_anonymization_task_id) VALUES (_task.account_anonymization_task_id)
        ON CONFLICT DO NOTHING;
        RETURN jsonb_build_object('status', 'succeeded');
    EXCEPTION WHEN OTHERS THEN
        INSERT INTO accounts.account_anonymization_task_failed (account_anonymization_attempt_id, error_message)
        VALUES (_account_anonymization_attempt_id, SQLERRM) ON CONFLICT DO NOTHING;
        RETURN jsonb_build_object('status', 'account_anonymization_failed', 'error', SQLERRM);
    END;
END
$$;

REVOKE ALL ON FUNCTION accounts.account_anonymization_settings, accounts.has_account_anonymization_succeeded_attempt,
    accounts.count_account_anonymization_failed_attempts, accounts.count_account_anonymization_attempts, accounts.is_account_anonymization_stuck,
    accounts.anonymize_account, accounts.kickoff_account_anonymization, accounts.account_anonymization_supervisor,
    accounts.perform_account_anonymization FROM PUBLIC;
GRANT USAGE ON SCHEMA accounts TO worker_service_user;
GRANT EXECUTE ON FUNCTION accounts.account_anonymization_supervisor, accounts.perform_account_anonymization TO worker_service_user;

-- +goose StatementEnd
