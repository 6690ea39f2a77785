-- Chapter 7: functions that set the source and the hooks of organizations (chapter 2). A call that
-- changes nothing waits for nothing, so that a program may make it each time it starts. Otherwise
-- the function waits until no transaction posts by the old record, and makes jobs pending again
-- that failed because the old source did not know their documents, or could not read them.
--
-- SQLSTATE: DB010 the request is invalid.

-- +goose Up
-- +goose StatementBegin

CREATE FUNCTION daybook.check_organization(org_id text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    IF coalesce(org_id, '') = '' OR octet_length(org_id) > 255 THEN
        RAISE EXCEPTION 'an organization''s id must have 1 to 255 bytes' USING ERRCODE = 'DB010';
    END IF;
END
$$;

CREATE FUNCTION daybook.check_names(names text[], what text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    bad text;
BEGIN
    SELECT coalesce(n, 'null') INTO bad FROM unnest(names) AS n WHERE (n ~ '^[a-z0-9][a-z0-9_.-]{0,62}$') IS NOT TRUE LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '"%" cannot be the name of a %', bad, what
            USING ERRCODE = 'DB010', HINT = 'name it by 1 to 63 of a-z, 0-9, _, . and -, beginning with a letter or digit';
    END IF;
END
$$;

-- source null: the organization follows the default.
CREATE FUNCTION daybook.set_source(org_id text, source text, OUT changed boolean, OUT returned integer)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    PERFORM daybook.check_organization(set_source.org_id);
    IF set_source.source IS NOT NULL THEN
        PERFORM daybook.check_names(ARRAY[set_source.source], 'source');
    END IF;
    returned := 0;
    changed := set_source.source IS DISTINCT FROM (SELECT o.source FROM daybook.organizations o WHERE o.id = set_source.org_id);
    IF changed THEN
        INSERT INTO daybook.organizations (id) VALUES (set_source.org_id) ON CONFLICT (id) DO NOTHING;
        PERFORM daybook.lock_configuration(set_source.org_id);
        UPDATE daybook.organizations o SET source = set_source.source, updated_at = clock_timestamp() WHERE o.id = set_source.org_id;
        returned := daybook.return_failed_jobs(set_source.org_id, '{DOCUMENT_UNKNOWN,SOURCE_INVALID}');
        -- Also without any: jobs that no worker could lease may be workable now.
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;
COMMENT ON FUNCTION daybook.set_source IS
    'Puts on record which source an organization''s documents are read from; null: that of daybook.defaults. returned: failed jobs that are pending again';

-- hooks null: the organization follows the default; an empty list: none.
CREATE FUNCTION daybook.set_hooks(org_id text, hooks text[], OUT changed boolean)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    names CONSTANT text[] := CASE WHEN set_hooks.hooks IS NOT NULL THEN ARRAY(SELECT DISTINCT n COLLATE "C" FROM unnest(set_hooks.hooks) AS n ORDER BY 1) END;
BEGIN
    PERFORM daybook.check_organization(set_hooks.org_id), daybook.check_names(set_hooks.hooks, 'hook');
    changed := names IS DISTINCT FROM (SELECT o.hooks FROM daybook.organizations o WHERE o.id = set_hooks.org_id);
    IF changed THEN
        INSERT INTO daybook.organizations (id) VALUES (set_hooks.org_id) ON CONFLICT (id) DO NOTHING;
        PERFORM daybook.lock_configuration(set_hooks.org_id);
        UPDATE daybook.organizations o SET hooks = names, updated_at = clock_timestamp() WHERE o.id = set_hooks.org_id;
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;
COMMENT ON FUNCTION daybook.set_hooks IS
    'Puts on record which hooks are called with an organization''s postings; null: those of daybook.defaults; empty: none';

-- The defaults are locked as the configuration of the organization '', which each posting
-- transaction uses as well.
CREATE FUNCTION daybook.set_default_source(source text, OUT changed boolean, OUT returned integer)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    PERFORM daybook.check_names(ARRAY[set_default_source.source], 'source');
    returned := 0;
    changed := set_default_source.source <> (SELECT d.source FROM daybook.defaults d);
    IF changed THEN
        PERFORM daybook.lock_configuration('');
        UPDATE daybook.defaults d SET source = set_default_source.source;
        returned := daybook.return_failed_jobs(NULL, '{DOCUMENT_UNKNOWN,SOURCE_INVALID}');
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;
COMMENT ON FUNCTION daybook.set_default_source IS
    'Puts on record from which source the documents of organizations that name none are read';

CREATE FUNCTION daybook.set_default_hooks(hooks text[], OUT changed boolean)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    names CONSTANT text[] := ARRAY(SELECT DISTINCT n COLLATE "C" FROM unnest(set_default_hooks.hooks) AS n ORDER BY 1);
BEGIN
    PERFORM daybook.check_names(set_default_hooks.hooks, 'hook');
    changed := names <> (SELECT d.hooks FROM daybook.defaults d);
    IF changed THEN
        PERFORM daybook.lock_configuration('');
        UPDATE daybook.defaults d SET hooks = names;
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;
COMMENT ON FUNCTION daybook.set_default_hooks IS
    'Puts on record which hooks are called with the postings of organizations that name none';

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.set_default_hooks, daybook.set_default_source, daybook.set_hooks, daybook.set_source,
    daybook.check_names, daybook.check_organization;
