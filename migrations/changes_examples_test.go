package migrations_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

// example is a migration, and a part of what is found in it: nothing, where workers go on beside it
// and programs of the release before have what they use.
type example struct {
	// before is executed first, as if a release had it.
	before string
	up     string
	// down is empty where nothing is asked of it.
	down    string
	problem string
}

const (
	noTransaction = "-- +goose NO TRANSACTION\n"
	// notReady makes a function of release 0.1.0 anew.
	notReady = `DROP FUNCTION daybook.mark_document_not_ready; CREATE FUNCTION daybook.mark_document_not_ready`
	// ready makes another, but for its parameters.
	ready = `DROP FUNCTION daybook.mark_document_ready; CREATE FUNCTION daybook.mark_document_ready`
	empty = ` LANGUAGE plpgsql AS 'BEGIN END'`
	// later is a function whose body follows.
	later = `CREATE FUNCTION daybook.later() RETURNS void LANGUAGE plpgsql AS `
	// old is a column that no program uses, and noOld takes it away.
	old   = `ALTER TABLE daybook.jobs ADD COLUMN old text; `
	noOld = "-- +daybook breaks\nALTER TABLE daybook.jobs DROP COLUMN old"
	slot  = `(type text, queue text, min_version integer) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT $1'`
)

// What a migration of these would do to workers is found.
func TestProblemsOfMigrationsAreFound(t *testing.T) {
	t.Parallel()
	for _, examples := range []map[string]example{added, lockedTables, alone, usedThings, guardedRows, functions, bodies} {
		for name, e := range examples {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				db := pgtest.New(t)
				_, err := db.Pool.Exec(t.Context(), e.before)
				require.NoError(t, err)
				found := problems(t, db, "-- +goose Up\n"+e.up+";\n-- +goose Down\n"+e.down)
				if e.problem == "" {
					assert.Empty(t, found)
					return
				}
				assert.Contains(t, strings.Join(found, "\n"), e.problem)
			})
		}
	}
}

var added = map[string]example{
	"a nullable column":             {up: `ALTER TABLE daybook.jobs ADD COLUMN later text`},
	"a column with a default":       {up: `ALTER TABLE daybook.jobs ADD COLUMN later int NOT NULL DEFAULT 0`},
	"a table of its own":            {up: `CREATE TABLE daybook.later (id bigint PRIMARY KEY, job text REFERENCES daybook.jobs ON DELETE CASCADE); CREATE UNIQUE INDEX later_id ON daybook.later (id)`},
	"the same function, other body": {up: `CREATE OR REPLACE FUNCTION daybook.later() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE OR REPLACE FUNCTION daybook.later() RETURNS int LANGUAGE sql AS 'SELECT 2'`},
}

var lockedTables = map[string]example{
	"an index":                       {up: `CREATE INDEX later ON daybook.jobs (org_id)`, problem: "reads daybook.jobs while it holds ShareLock"},
	"a table written anew":           {up: `ALTER TABLE daybook.jobs ADD COLUMN later uuid DEFAULT gen_random_uuid()`, problem: "writes daybook.jobs anew"},
	"a constraint that is validated": {up: `ALTER TABLE daybook.jobs ADD CONSTRAINT later CHECK (org_id <> 'x')`, problem: "reads daybook.jobs while it holds AccessExclusiveLock"},
	"a reference":                    {up: `CREATE TABLE daybook.later (id text PRIMARY KEY); ALTER TABLE daybook.jobs ADD FOREIGN KEY (org_id) REFERENCES daybook.later`, problem: "reads daybook.jobs while it holds"},
	"rows that are moved":            {up: `ALTER TABLE daybook.jobs ADD COLUMN later text; UPDATE daybook.jobs SET later = org_id`, problem: "reads daybook.jobs while it holds"},
	"rows of another table": {
		up:      `ALTER TABLE daybook.jobs ADD COLUMN later text; CREATE TABLE daybook.later (id text); INSERT INTO daybook.later SELECT id FROM daybook.documents`,
		problem: "reads daybook.documents while it holds AccessExclusiveLock on daybook.jobs",
	},
	"rows of another table, without a lock": {up: `CREATE TABLE daybook.later (id text); INSERT INTO daybook.later SELECT id FROM daybook.documents`},
	"the row of the defaults":               {up: `ALTER TABLE daybook.defaults ADD COLUMN later text; UPDATE daybook.defaults SET later = source`},
}

// alone are outside of a transaction.
var alone = map[string]example{
	"an index outside": {up: noTransaction + "DROP INDEX CONCURRENTLY IF EXISTS daybook.later;\nCREATE INDEX CONCURRENTLY later ON daybook.jobs (org_id)"},
	"a valid constraint outside": {
		before: `ALTER TABLE daybook.jobs ADD CONSTRAINT jobs_later CHECK (org_id <> '') NOT VALID`,
		up:     noTransaction + "ALTER TABLE daybook.jobs VALIDATE CONSTRAINT jobs_later",
	},
	"an index that a try has left": {up: noTransaction + "CREATE INDEX CONCURRENTLY IF NOT EXISTS later ON daybook.jobs (org_id)", problem: "DROP INDEX CONCURRENTLY IF EXISTS daybook.later first"},
	"a lock outside":               {up: noTransaction + "ALTER TABLE daybook.jobs ADD COLUMN later text", problem: "outside of a transaction"},
	"a lock beside a constraint that is made valid": {
		before:  `ALTER TABLE daybook.jobs ADD CONSTRAINT jobs_later CHECK (org_id <> '') NOT VALID, ADD CONSTRAINT jobs_old CHECK (org_id <> '')`,
		up:      noTransaction + "ALTER TABLE daybook.jobs DROP CONSTRAINT jobs_old, VALIDATE CONSTRAINT jobs_later",
		problem: "outside of a transaction",
	},
	"an index made anew": {
		up:      noTransaction + "DROP INDEX CONCURRENTLY IF EXISTS daybook.imports_org_id;\nCREATE INDEX CONCURRENTLY imports_org_id ON daybook.imports (org_id)",
		problem: "drops daybook.imports_org_id and makes daybook.imports_org_id",
	},
	"an index in the place of another": {
		up: noTransaction + "-- +daybook allows index daybook.imports_org_id: imports_later begins with its column\nDROP INDEX CONCURRENTLY IF EXISTS daybook.imports_later;\n" +
			"CREATE INDEX CONCURRENTLY imports_later ON daybook.imports (org_id, id);\nDROP INDEX CONCURRENTLY IF EXISTS daybook.imports_org_id",
		problem: "drops daybook.imports_org_id and makes daybook.imports_later",
	},
	"an index that another has replaced": {
		before: `CREATE INDEX imports_later ON daybook.imports (org_id, id)`,
		up:     noTransaction + "-- +daybook allows index daybook.imports_org_id: imports_later begins with its column\nDROP INDEX CONCURRENTLY IF EXISTS daybook.imports_org_id",
		down:   "DROP INDEX CONCURRENTLY IF EXISTS daybook.imports_org_id;\nCREATE INDEX CONCURRENTLY imports_org_id ON daybook.imports (org_id)",
	},
	"two indexes": {
		up: noTransaction + "DROP INDEX CONCURRENTLY IF EXISTS daybook.later;\nCREATE INDEX CONCURRENTLY later ON daybook.jobs (org_id);\n" +
			"DROP INDEX CONCURRENTLY IF EXISTS daybook.latest;\nCREATE INDEX CONCURRENTLY latest ON daybook.jobs (org_id, id)",
		down: "DROP INDEX CONCURRENTLY IF EXISTS daybook.later;\nDROP INDEX CONCURRENTLY IF EXISTS daybook.latest",
	},
	"two indexes, of which one may be there": {
		up: noTransaction + "DROP INDEX CONCURRENTLY IF EXISTS daybook.later;\nCREATE INDEX CONCURRENTLY later ON daybook.jobs (org_id);\n" +
			"CREATE INDEX CONCURRENTLY latest ON daybook.jobs (org_id, id)",
		problem: "DROP INDEX CONCURRENTLY IF EXISTS daybook.latest first",
	},
	"an index that is taken back, once": {
		up:      noTransaction + "DROP INDEX CONCURRENTLY IF EXISTS daybook.later;\nCREATE INDEX CONCURRENTLY later ON daybook.jobs (org_id)",
		down:    "DROP INDEX CONCURRENTLY daybook.later",
		problem: `cannot begin anew after an interruption, as "DROP INDEX CONCURRENTLY daybook.later" of its Down fails then`,
	},
	"an index that is gone and comes back": {
		before:  `CREATE INDEX later ON daybook.jobs (org_id)`,
		up:      noTransaction + "-- +daybook allows index daybook.later: it is slow\nDROP INDEX CONCURRENTLY IF EXISTS daybook.later",
		down:    "CREATE INDEX CONCURRENTLY IF NOT EXISTS later ON daybook.jobs (org_id)",
		problem: "DROP INDEX CONCURRENTLY IF EXISTS daybook.later first",
	},
}

var usedThings = map[string]example{
	"another type":                {up: `ALTER TABLE daybook.accounts ALTER COLUMN name TYPE varchar(100)`, problem: "takes away daybook.accounts.name = text"},
	"a column gone":               {up: `ALTER TABLE daybook.accounts DROP COLUMN name CASCADE`, problem: "takes away daybook.accounts.name"},
	"a column renamed":            {up: `ALTER TABLE daybook.accounts RENAME COLUMN name TO title`, problem: "takes away daybook.accounts.name"},
	"a statement that fails":      {up: "-- +daybook breaks\nALTER TABLE daybook.accounts RENAME COLUMN name TO title", problem: "programs of the release before send"},
	"a column that must be given": {up: `CREATE TABLE daybook.later (); DELETE FROM daybook.jobs; ALTER TABLE daybook.jobs ADD COLUMN later text NOT NULL`, problem: "daybook.jobs.later must be given"},
	"a default gone":              {up: `ALTER TABLE daybook.organizations ALTER COLUMN created_at DROP DEFAULT`, problem: "daybook.organizations.created_at must be given"},
	"a column that is always given": {
		before: `ALTER TABLE daybook.api_tokens ADD CHECK (org_id IS NOT NULL)`,
		up:     "-- +daybook allows daybook.api_tokens.org_id: each program gives it\nALTER TABLE daybook.api_tokens ALTER COLUMN org_id SET NOT NULL",
	},
	"a key that a statement names": {
		up:      "-- +daybook allows constraint archives_pkey of daybook.archives: no program names it\nALTER TABLE daybook.archives DROP CONSTRAINT archives_pkey",
		problem: "no unique or exclusion constraint matching the ON CONFLICT specification",
	},
	"a right taken away": {
		before: `GRANT SELECT ON daybook.jobs TO pg_monitor`, up: `REVOKE SELECT ON daybook.jobs FROM pg_monitor`,
		problem: "takes away SELECT of pg_monitor on daybook.jobs",
	},
	"a right on a sequence taken away": {
		before: `GRANT USAGE ON SEQUENCE daybook.fence_seq TO pg_monitor`, up: `REVOKE USAGE ON SEQUENCE daybook.fence_seq FROM pg_monitor`,
		problem: "takes away USAGE of pg_monitor on daybook.fence_seq",
	},
	"a right on a schema taken away": {
		before: `GRANT USAGE ON SCHEMA queues TO pg_monitor`, up: `REVOKE USAGE ON SCHEMA queues FROM pg_monitor`,
		problem: "takes away USAGE of pg_monitor on schema queues",
	},
	"a right on a table that is gone": {
		before: `CREATE TABLE daybook.old (id text); GRANT SELECT, INSERT (id) ON daybook.old TO pg_monitor`, up: "-- +daybook breaks\nDROP TABLE daybook.old",
	},
}

var guardedRows = map[string]example{
	"a check that is not valid yet": {up: `ALTER TABLE daybook.jobs ADD CONSTRAINT later CHECK (org_id <> 'x') NOT VALID`, problem: "constraint later of daybook.jobs is new"},
	"a check that has its reason":   {up: "-- +daybook allows constraint later of daybook.jobs: no program writes x\nALTER TABLE daybook.jobs ADD CONSTRAINT later CHECK (org_id <> 'x') NOT VALID"},
	"a reason that says nothing":    {up: "-- +daybook allows constraint later of daybook.jobs:\nALTER TABLE daybook.jobs ADD CONSTRAINT later CHECK (org_id <> 'x') NOT VALID", problem: "constraint later of daybook.jobs is new"},
	"a reason without need":         {up: "-- +daybook allows index daybook.jobs_due: it is slow\nALTER TABLE daybook.jobs ADD COLUMN later text", problem: "allows index daybook.jobs_due, which does not change"},
	"a check of a new column": {
		up:      `ALTER TABLE daybook.jobs ADD COLUMN later text; ALTER TABLE daybook.jobs ADD CHECK (later IS NOT NULL) NOT VALID`,
		problem: "constraint jobs_later_check of daybook.jobs is new",
	},
	"a unique index": {
		up:      noTransaction + "DROP INDEX CONCURRENTLY IF EXISTS daybook.later;\nCREATE UNIQUE INDEX CONCURRENTLY later ON daybook.jobs (org_id)",
		problem: "index daybook.later is new",
	},
	"a trigger":             {up: `CREATE TRIGGER later BEFORE INSERT ON daybook.jobs FOR EACH ROW EXECUTE FUNCTION daybook.refuse_removal()`, problem: "trigger later of daybook.jobs is new"},
	"row security":          {up: `ALTER TABLE daybook.jobs ENABLE ROW LEVEL SECURITY`, problem: "row security of daybook.jobs is new"},
	"rows that must stay":   {up: `CREATE TABLE daybook.later (job text REFERENCES daybook.jobs)`, problem: "constraint later_job_fkey of daybook.later is new"},
	"a key gone":            {up: `ALTER TABLE daybook.queue_rates DROP CONSTRAINT queue_rates_pkey`, problem: "constraint queue_rates_pkey of daybook.queue_rates is not there"},
	"an index gone":         {up: noTransaction + `DROP INDEX CONCURRENTLY IF EXISTS daybook.jobs_key`, problem: "index daybook.jobs_key is not there"},
	"a trigger that is off": {up: `ALTER TABLE daybook.jobs DISABLE TRIGGER completed_changed`, problem: "trigger completed_changed of daybook.jobs is not there"},
	"a table gone for good": {before: `CREATE TABLE daybook.old (id text PRIMARY KEY)`, up: "-- +daybook breaks\nDROP TABLE daybook.old"},
}

var functions = map[string]example{
	"another type of a parameter": {up: `DROP FUNCTION daybook.mark_document_ready; CREATE FUNCTION daybook.mark_document_ready(id text) RETURNS int LANGUAGE sql AS 'SELECT 1'`, problem: "takes away daybook.mark_document_ready(document_id)"},
	"an optional parameter more":  {up: notReady + `(org_id text, document_id text, reason text DEFAULT NULL, OUT version bigint, OUT job_id text, OUT result text)` + empty},
	"a parameter more":            {up: notReady + `(org_id text, document_id text, reason text, OUT version bigint, OUT job_id text, OUT result text)` + empty, problem: "takes away daybook.mark_document_not_ready = "},
	"a parameter renamed":         {up: notReady + `(org text, document_id text, OUT version bigint, OUT job_id text, OUT result text)` + empty, problem: "takes away daybook.mark_document_not_ready(org_id) = "},
	"a column of the result gone": {up: notReady + `(org_id text, document_id text, OUT job_id text, OUT result text)` + empty, problem: "takes away daybook.mark_document_not_ready = "},
	"a parameter's default gone":  {up: ready + `(org_id text, document_id text, priority integer, OUT version bigint, OUT job_id text, OUT result text)` + empty, problem: "takes away daybook.mark_document_ready(priority) = "},
	"another of the name": {
		up:      `CREATE FUNCTION daybook.mark_document_ready(org_id text, document_id text, priority integer DEFAULT NULL, later text DEFAULT NULL) RETURNS void` + empty,
		problem: "makes another function of the name daybook.mark_document_ready",
	},
	"another volatility": {up: `ALTER FUNCTION daybook.mark_document_ready STABLE`, problem: "takes away daybook.mark_document_ready = "},
	"rights of a role that are gone": {
		before:  `GRANT EXECUTE ON FUNCTION daybook.mark_document_not_ready TO pg_monitor`,
		up:      notReady + `(org_id text, document_id text, OUT version bigint, OUT job_id text, OUT result text)` + empty,
		problem: "takes away EXECUTE of pg_monitor on daybook.mark_document_not_ready",
	},
	"rights of every role": {
		before:  `REVOKE ALL ON FUNCTION daybook.mark_document_not_ready FROM PUBLIC`,
		up:      notReady + `(org_id text, document_id text, OUT version bigint, OUT job_id text, OUT result text)` + empty,
		problem: "gives EXECUTE of PUBLIC on daybook.mark_document_not_ready",
	},
	"the body of an index's function": {up: `CREATE OR REPLACE FUNCTION daybook.job_slot` + slot, problem: "changes the body of daybook.job_slot(text,text,integer)"},
	"the body of one that it calls":   {up: `CREATE OR REPLACE FUNCTION daybook.versioned_job_slot` + slot, problem: "changes the body of daybook.versioned_job_slot(text,text,integer)"},
	"the body of a check's function": {
		up:      `CREATE OR REPLACE FUNCTION daybook.later(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false'`,
		before:  `CREATE FUNCTION daybook.later(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true'; ALTER TABLE daybook.jobs ADD CHECK (daybook.later(org_id))`,
		problem: "changes the body of daybook.later(text)",
	},
	"the body of a column's function": {
		up:      `CREATE OR REPLACE FUNCTION daybook.later(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT 1'`,
		before:  `CREATE FUNCTION daybook.later(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT 2'; ALTER TABLE daybook.jobs ADD COLUMN kept text GENERATED ALWAYS AS (daybook.later(org_id)) STORED`,
		problem: "changes the body of daybook.later(text)",
	},
	"the body of a default's function": {
		up:     `CREATE OR REPLACE FUNCTION daybook.later() RETURNS text LANGUAGE sql AS 'SELECT 1'`,
		before: `CREATE FUNCTION daybook.later() RETURNS text LANGUAGE sql AS 'SELECT 2'; ALTER TABLE daybook.jobs ADD COLUMN kept text DEFAULT daybook.later()`,
	},
}

// bodies are of functions that stay as they were.
var bodies = map[string]example{
	"a column that no body names": {before: old + later + `'BEGIN PERFORM 1 FROM daybook.jobs; END'`, up: noOld},
	"a column that one names":     {before: old + later + `'BEGIN PERFORM j.old FROM daybook.jobs j; END'`, up: noOld, problem: "daybook.jobs.old in daybook.later is named there"},
	"a column that one names in a comment": {before: old + later + `'BEGIN PERFORM 1 FROM daybook.jobs; -- not by old
		END'`, up: noOld},
	"a name like that of a column":           {before: old + later + `'DECLARE old_one text; BEGIN PERFORM 1 FROM daybook.jobs; END'`, up: noOld},
	"a column of another table":              {before: old + `ALTER TABLE daybook.queues ADD COLUMN old text; ` + later + `'BEGIN PERFORM old FROM daybook.queues; END'`, up: noOld},
	"a variable of the name":                 {before: old + later + `'DECLARE old text; BEGIN SELECT id INTO old FROM daybook.jobs; END'`, up: "-- +daybook allows daybook.jobs.old in daybook.later: it is a variable there\n" + noOld},
	"a function that is made anew as well":   {before: old + later + `'BEGIN PERFORM old FROM daybook.jobs; END'`, up: noOld + `; CREATE OR REPLACE FUNCTION daybook.later() RETURNS void` + empty},
	"a column renamed that a function needs": {up: "-- +daybook breaks\nALTER TABLE daybook.job_callbacks RENAME COLUMN token_hash TO hash", problem: "daybook.job_callbacks.token_hash in daybook.enqueue_job_with_callback is named there"},
	"a column that a trigger reads": {
		before: old + `CREATE FUNCTION daybook.later() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.old := 1; RETURN NEW; END'; CREATE TRIGGER later BEFORE INSERT ON daybook.jobs FOR EACH ROW EXECUTE FUNCTION daybook.later()`,
		up:     noOld, problem: "daybook.jobs.old in daybook.later is named there",
	},
	"a column of rows that a function returns": {
		before: old + `CREATE FUNCTION daybook.listed() RETURNS SETOF daybook.jobs LANGUAGE sql AS 'SELECT * FROM daybook.jobs'; ` + later + `'BEGIN PERFORM old FROM daybook.listed(); END'`,
		up:     noOld, problem: "daybook.jobs.old in daybook.later is named there",
	},
	"a column of an argument": {
		before: old + `CREATE FUNCTION daybook.later(j daybook.jobs) RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN j.old; END'`,
		up:     noOld, problem: "daybook.jobs.old in daybook.later is named there",
	},
	"a column that a function in SQL reads": {
		before: old + `CREATE FUNCTION daybook.later() RETURNS text LANGUAGE sql AS 'SELECT old FROM daybook.jobs'`,
		up:     noOld, problem: `leaves daybook.later(), whose body does not fit the schema: column "old" does not exist`,
	},
	"a column that a function in SQL does not read": {
		before: old + `CREATE FUNCTION daybook.later(old text) RETURNS text LANGUAGE sql AS 'SELECT old FROM daybook.jobs'`, up: noOld + `; DROP FUNCTION daybook.later`,
	},
	"a table gone": {
		before: `CREATE TABLE daybook.old (id text); ` + later + `'BEGIN DELETE FROM daybook.old WHERE id IS NULL; END'`,
		up:     "-- +daybook breaks\nDROP TABLE daybook.old", problem: "daybook.old in daybook.later is named there",
	},
	"a table gone whose rows are a type": {
		before: `CREATE TABLE daybook.old (id text); ` + later + `'DECLARE r daybook.old; BEGIN END'`,
		up:     "-- +daybook breaks\nDROP TABLE daybook.old", problem: `leaves daybook.later(), whose body does not fit the schema: type "daybook.old" does not exist`,
	},
	"a sequence renamed":      {before: `CREATE SEQUENCE daybook.old; ` + later + `'BEGIN PERFORM nextval(''daybook.old''); END'`, up: `ALTER SEQUENCE daybook.old RENAME TO new`, problem: "daybook.old in daybook.later is named there"},
	"a function renamed":      {up: `ALTER FUNCTION internal.run_function RENAME TO run`, problem: "internal.run_function in internal.run_functions is named there"},
	"a parameter more, calls": {up: "-- +daybook breaks\n" + notReady + `(org_id text, document_id text, reason text, OUT version bigint, OUT job_id text, OUT result text)` + empty, before: later + `'BEGIN PERFORM daybook.mark_document_not_ready(1, 2); END'`, problem: "daybook.mark_document_not_ready of 2 parameters in daybook.later is named there"},
	"an optional parameter more, calls": {
		before: later + `'BEGIN PERFORM daybook.mark_document_not_ready(1, 2); END'`,
		up:     notReady + `(org_id text, document_id text, reason text DEFAULT NULL, OUT version bigint, OUT job_id text, OUT result text)` + empty,
	},
	"a column of a result gone, calls": {
		before:  later + `'BEGIN PERFORM m.version FROM daybook.mark_document_not_ready(1, 2) m; END'`,
		up:      "-- +daybook breaks\n" + notReady + `(org_id text, document_id text, OUT job_id text, OUT result text)` + empty,
		problem: "daybook.mark_document_not_ready.version in daybook.later is named there",
	},
}
