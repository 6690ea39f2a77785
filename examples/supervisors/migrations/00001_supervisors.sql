-- Chapter 1: what all supervisors here share. Each process has its tables, its settings, its supervisor and its handlers in the chapters that follow.
--
-- What others call is SECURITY DEFINER with a pinned search path. PUBLIC may call nothing, and the worker's role only what tasks name: supervisors,
-- handlers, and functions that are attempts.

-- +goose Up
-- +goose StatementBegin

CREATE SCHEMA IF NOT EXISTS supervisors;

-- The id that a payload has under a name; null when it has none, or something else. It never raises: a supervisor that raises runs for the last time.
CREATE FUNCTION supervisors.id_of(_payload jsonb, _name text) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT CASE WHEN _payload ->> _name ~ '^[0-9]{1,18}$' THEN (_payload ->> _name)::bigint END
$$;

-- The pause after a number of failures: _base, and twice as long for each failure, up to _longest.
CREATE FUNCTION supervisors.backoff(_base interval, _longest interval, _failures integer) RETURNS interval
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT least(_base * power(2, least(greatest(_failures, 0), 20)), _longest)
$$;

REVOKE ALL ON FUNCTION supervisors.id_of, supervisors.backoff FROM PUBLIC;

-- +goose StatementEnd
