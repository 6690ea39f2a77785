-- Chapter 19: Daybook's own figures: how the queues stand now, and how attempts ended lately.
-- Pages, reports and alerts read these tables, so that they take as long whatever the queues' size.
-- docs/metrics.md says what each figure means, and which are estimates.

-- +goose Up
-- +goose StatementBegin

-- One row a kind of queue, and one, database, of what all kinds share. One process at a time writes
-- them, every 15 seconds.
CREATE TABLE daybook.gauges (
    kind          text COLLATE "C" PRIMARY KEY CHECK (kind <> ''),
    sampled_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    holder        text NOT NULL,
    due           bigint NOT NULL DEFAULT 0 CHECK (due >= 0),
    waiting       bigint NOT NULL DEFAULT 0 CHECK (waiting >= 0),
    leased        bigint NOT NULL DEFAULT 0 CHECK (leased >= 0),
    failed        bigint NOT NULL DEFAULT 0 CHECK (failed >= 0),
    stale_leases  bigint NOT NULL DEFAULT 0 CHECK (stale_leases >= 0),
    unhandled     bigint NOT NULL DEFAULT 0 CHECK (unhandled >= 0),
    held_back     bigint NOT NULL DEFAULT 0 CHECK (held_back >= 0),
    oldest_due_at timestamptz,
    estimated     text[] NOT NULL DEFAULT '{}',
    figures       jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(figures) = 'object')
) WITH (
    -- A few rows that are updated all the time: without a threshold of its own autovacuum would
    -- come every few minutes, also to an idle database.
    fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);
COMMENT ON TABLE daybook.gauges IS
    'How the queues stood when they were last sampled: one row a kind, and one of the whole database';
COMMENT ON COLUMN daybook.gauges.holder IS 'The process that samples';
COMMENT ON COLUMN daybook.gauges.due IS 'Jobs that are pending and whose time has come; waiting: whose time lies ahead';
COMMENT ON COLUMN daybook.gauges.oldest_due_at IS
    'Since when the oldest due job is due, those of paused organizations and types left out; null: none is due';
COMMENT ON COLUMN daybook.gauges.estimated IS
    'Those of the columns due, waiting, leased and failed that are estimates: there were more rows than are counted';
COMMENT ON COLUMN daybook.gauges.figures IS
    'The same by type, dead letters by error code, and the state of the workflow';

-- What attempts came to. Each report of a worker is added to its minute, its ten minutes and its
-- hour: a reader takes the coarsest that serves it, and the finer ones are removed sooner.
CREATE TABLE daybook.history (
    seconds        integer NOT NULL CHECK (seconds IN (60, 600, 3600)),
    at             timestamptz NOT NULL,
    kind           text COLLATE "C" NOT NULL,
    type           text COLLATE "C" NOT NULL,
    outcome        text COLLATE "C" NOT NULL,
    code           text COLLATE "C" NOT NULL,
    org_id         text COLLATE "C" NOT NULL DEFAULT '',
    count          bigint NOT NULL CHECK (count >= 0),
    waited_seconds double precision NOT NULL,
    took_seconds   double precision NOT NULL,
    waited         bigint[] NOT NULL,
    took           bigint[] NOT NULL,
    PRIMARY KEY (seconds, at, kind, type, outcome, code, org_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.1);
COMMENT ON TABLE daybook.history IS
    'What attempts came to, by the minute (kept for two days), by ten minutes (eight days) and by the hour (31 days)';
COMMENT ON COLUMN daybook.history.seconds IS 'How long a span the row stands for, from at on';
COMMENT ON COLUMN daybook.history.type IS
    'The type of a job or task; empty for accounting; other: one of the types beyond the hundredth';
COMMENT ON COLUMN daybook.history.code IS 'The error code; empty: no error';
COMMENT ON COLUMN daybook.history.org_id IS
    'The organization, where a worker is told to keep them apart (DAYBOOK_METRICS_ORGANIZATIONS); else empty';
COMMENT ON COLUMN daybook.history.waited_seconds IS
    'The sum of the times from when the jobs were first due until the attempts ended; waited: how many in each '
    'bucket';
COMMENT ON COLUMN daybook.history.took_seconds IS
    'The sum of the times that the attempts took; took: how many in each bucket';

-- How deep the queues were: the highest figures of each span.
CREATE TABLE daybook.depths (
    seconds            integer NOT NULL CHECK (seconds IN (60, 600, 3600)),
    at                 timestamptz NOT NULL,
    kind               text COLLATE "C" NOT NULL,
    due                bigint NOT NULL,
    waiting            bigint NOT NULL,
    leased             bigint NOT NULL,
    failed             bigint NOT NULL,
    oldest_due_seconds double precision NOT NULL,
    PRIMARY KEY (seconds, at, kind)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);
COMMENT ON TABLE daybook.depths IS
    'The highest gauges of each minute, ten minutes and hour, kept for as long as daybook.history';
COMMENT ON COLUMN daybook.depths.oldest_due_seconds IS 'For how long the oldest due job had been due; 0: none was';

-- +goose StatementEnd

-- +goose Down
DROP TABLE daybook.depths, daybook.history, daybook.gauges;
