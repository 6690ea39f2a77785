-- Chapter 4: accounts, their profiles, and what a profile records for a cue.

-- +goose Up
-- +goose StatementBegin

CREATE SCHEMA IF NOT EXISTS accounts;
CREATE SCHEMA IF NOT EXISTS learning;
CREATE SCHEMA IF NOT EXISTS files;
CREATE SCHEMA IF NOT EXISTS api;

CREATE TABLE accounts.account (
    account_id bigserial PRIMARY KEY,
    name       text NOT NULL,
    email      text,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- What has happened to an account, for good.
CREATE TABLE accounts.account_flag (
    account_id bigint NOT NULL REFERENCES accounts.account,
    flag       text NOT NULL CHECK (flag IN ('deleted', 'anonymized')),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account_id, flag)
);

CREATE TABLE accounts.profile (
    profile_id   bigserial PRIMARY KEY,
    account_id   bigint NOT NULL REFERENCES accounts.account,
    display_name text NOT NULL
);
CREATE INDEX profile_account ON accounts.profile (account_id);

CREATE TABLE learning.cue (
    cue_id bigserial PRIMARY KEY,
    text   text NOT NULL
);

-- A file in blob storage. The row stays when the file is deleted.
CREATE TABLE files.file (
    file_id    bigserial PRIMARY KEY,
    account_id bigint NOT NULL REFERENCES accounts.account,
    bucket     text NOT NULL,
    object_key text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (bucket, object_key)
);
CREATE INDEX file_account ON files.file (account_id);

CREATE TABLE files.file_metadata (
    file_id  bigint PRIMARY KEY REFERENCES files.file,
    metadata jsonb NOT NULL DEFAULT '{}'
);

-- What a client is allowed to upload: it writes the object, and then calls api.complete_recording_upload.
CREATE TABLE files.upload_intent (
    upload_intent_id bigserial PRIMARY KEY,
    profile_id       bigint NOT NULL REFERENCES accounts.profile,
    cue_id           bigint NOT NULL REFERENCES learning.cue,
    bucket           text NOT NULL,
    object_key       text NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE learning.profile_cue_recording (
    upload_intent_id bigint PRIMARY KEY REFERENCES files.upload_intent,
    profile_id       bigint NOT NULL REFERENCES accounts.profile,
    cue_id           bigint NOT NULL REFERENCES learning.cue,
    file_id          bigint NOT NULL REFERENCES files.file,
    created_at       timestamptz NOT NULL DEFAULT now()
);

-- The account's row is locked for a moment: a file comes before the account's deletion, which then deletes it, or not at all.
CREATE FUNCTION api.complete_recording_upload(_upload_intent_id bigint, OUT file_id bigint, OUT validation_failure_message text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _intent     files.upload_intent;
    _account_id bigint;
BEGIN
    SELECT u.* INTO _intent FROM files.upload_intent u WHERE u.upload_intent_id = _upload_intent_id;
    SELECT a.account_id INTO _account_id
      FROM accounts.account a JOIN accounts.profile p USING (account_id) WHERE p.profile_id = _intent.profile_id FOR NO KEY UPDATE OF a;
    IF NOT FOUND THEN
        validation_failure_message := format('There is no upload intent %s.', coalesce(_upload_intent_id::text, 'null'));
        RETURN;
    ELSIF EXISTS (SELECT FROM accounts.account_flag f WHERE f.account_id = _account_id AND f.flag = 'deleted') THEN
        validation_failure_message := format('Account %s is deleted.', _account_id);
        RETURN;
    END IF;
    SELECT r.file_id INTO complete_recording_upload.file_id FROM learning.profile_cue_recording r WHERE r.upload_intent_id = _upload_intent_id;
    IF FOUND THEN
        RETURN;
    END IF;
    INSERT INTO files.file (account_id, bucket, object_key) VALUES (_account_id, _intent.bucket, _intent.object_key)
    RETURNING file.file_id INTO complete_recording_upload.file_id;
    INSERT INTO files.file_metadata (file_id, metadata) VALUES (complete_recording_upload.file_id, '{"kind": "recording"}');
    INSERT INTO learning.profile_cue_recording (upload_intent_id, profile_id, cue_id, file_id)
    VALUES (_upload_intent_id, _intent.profile_id, _intent.cue_id, complete_recording_upload.file_id);
END
$$;

REVOKE ALL ON FUNCTION api.complete_recording_upload FROM PUBLIC;

-- +goose StatementEnd
