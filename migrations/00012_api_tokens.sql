-- Chapter 12: the tokens of the HTTP API.
--
-- SQLSTATEs: DB004 a token that is revoked stays so.

-- +goose Up
-- +goose StatementBegin

-- The tokens of the HTTP API and what each may do. A token is known by its SHA-256 alone.
CREATE TABLE daybook.api_tokens (
    id           text COLLATE "C" PRIMARY KEY DEFAULT daybook.new_id(),
    org_id       text COLLATE "C" CHECK (org_id <> '' AND octet_length(org_id) <= 255),
    name         text NOT NULL,
    scopes       text[] NOT NULL CHECK (cardinality(scopes) > 0 AND scopes <@ ARRAY['read', 'enqueue', 'operate', 'decrypt'] AND array_position(scopes, NULL) IS NULL),
    hash         bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_used_at timestamptz,
    revoked_at   timestamptz,
    types        text[] CHECK (cardinality(types) BETWEEN 1 AND 100 AND array_position(types, NULL) IS NULL),
    requests_per_minute integer CHECK (requests_per_minute BETWEEN 1 AND 1000000),
    jobs_per_minute     integer CHECK (jobs_per_minute BETWEEN 1 AND 1000000),
    run_by_get   boolean NOT NULL DEFAULT false CHECK (NOT run_by_get OR 'operate' = ANY (scopes))
);
COMMENT ON COLUMN daybook.api_tokens.org_id IS 'The organization that it may reach; null: all';
COMMENT ON COLUMN daybook.api_tokens.types IS
    'The types of background jobs that it may enqueue; null: all, but cleanup and db_function only with the scope operate';
COMMENT ON COLUMN daybook.api_tokens.requests_per_minute IS
    'How many requests each server takes from it in a minute; null: no limit';
COMMENT ON COLUMN daybook.api_tokens.jobs_per_minute IS
    'How many jobs each server enqueues for it in a minute; null: no limit';
COMMENT ON COLUMN daybook.api_tokens.run_by_get IS 'GET /api/jobs/run works due jobs, as POST does';

-- Who may revoke tokens cannot bring one back, nor say that it was revoked at another time.
CREATE FUNCTION daybook.keep_revoked() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'the token % is revoked', OLD.id USING ERRCODE = 'DB004', HINT = 'make another one: daybook tokens create';
END
$$;
CREATE TRIGGER api_tokens_stay_revoked BEFORE UPDATE ON daybook.api_tokens
    FOR EACH ROW WHEN (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at)
    EXECUTE FUNCTION daybook.keep_revoked();

-- +goose StatementEnd

-- +goose Down
DROP TABLE daybook.api_tokens;
DROP FUNCTION daybook.keep_revoked;
