-- Chapter 21: operators: the sessions of the web console, and the log of actions.

-- +goose Up
-- +goose StatementBegin

-- Who is signed in to the web console. A session is known by the SHA-256 of what the browser's
-- cookie holds; it ends when its time is over, when its holder signs out, and with its token.
CREATE TABLE daybook.console_sessions (
    hash       bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    token_id   text COLLATE "C" NOT NULL REFERENCES daybook.api_tokens (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX console_sessions_expires_at ON daybook.console_sessions (expires_at);
CREATE INDEX console_sessions_token_id ON daybook.console_sessions (token_id);

-- What operators did, through the console, the API and the command line. Append-only, also for the
-- owner. Names of tokens are kept as they were; there is no foreign key, because a removed token
-- must not take the log of what it did along.
CREATE TABLE daybook.actions (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    via        text NOT NULL CHECK (via IN ('console', 'api', 'cli')),
    action     text NOT NULL CHECK (action ~ '^[a-z][a-z0-9._-]{0,99}$'),
    token_id   text COLLATE "C",
    actor      text NOT NULL,
    db_role    text NOT NULL DEFAULT session_user,
    org_id     text COLLATE "C" CHECK (org_id <> '' AND octet_length(org_id) <= 255),
    subject    text COLLATE "C" NOT NULL DEFAULT '' CHECK (octet_length(subject) <= 1000),
    details    jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(details) = 'object'),
    outcome    text NOT NULL CHECK (outcome IN ('done', 'refused', 'failed')),
    code       text NOT NULL DEFAULT '',
    CHECK ((outcome = 'done') = (code = '')),
    CHECK ((via = 'cli') = (token_id IS NULL))
);
CREATE INDEX actions_org_id ON daybook.actions (org_id, id DESC);
CREATE INDEX actions_action ON daybook.actions (action, id DESC);
CREATE INDEX actions_subject ON daybook.actions (subject, id DESC);
COMMENT ON COLUMN daybook.actions.action IS 'What was done, such as jobs.retry';
COMMENT ON COLUMN daybook.actions.actor IS
    'The token''s name as it was, or the user of the operating system that ran the command';
COMMENT ON COLUMN daybook.actions.db_role IS 'The role of the database that wrote the row';
COMMENT ON COLUMN daybook.actions.org_id IS 'The organization that it was about; null: several, or none';
COMMENT ON COLUMN daybook.actions.subject IS 'What it was about: a job''s id, a document''s, a type …';
COMMENT ON COLUMN daybook.actions.details IS 'What was asked for, without secrets and payloads';
COMMENT ON COLUMN daybook.actions.outcome IS
    'refused: nothing was changed, because of what was asked for; failed: of something else';
-- Updates are refused by a trigger of chapter 26, which knows erasures.
CREATE TRIGGER actions_append_only BEFORE DELETE OR TRUNCATE ON daybook.actions
    FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_change();

-- +goose StatementEnd

-- +goose Down
DROP TABLE daybook.actions;
DROP TABLE daybook.console_sessions;
