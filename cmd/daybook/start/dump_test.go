package start

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
)

func TestNormaliseDumpLeavesOutWhatVaries(t *testing.T) {
	t.Parallel()
	const dump = `--
-- PostgreSQL database dump
--

\restrict abc

-- Dumped from database version 17.1
-- Dumped by pg_dump version 17.1

SET statement_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);

--
-- Name: f(); Type: FUNCTION; Schema: daybook; Owner: -
--

CREATE FUNCTION daybook.f() RETURNS void
    AS $$
UPDATE x
SET y = '^[A-Z]{3}$' || '$';


$$;


\unrestrict abc
`
	const want = dumpHeader + `-- Name: f(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.f() RETURNS void
    AS $$
UPDATE x
SET y = '^[A-Z]{3}$' || '$';


$$;
`
	assert.Equal(t, want, string(normaliseDump([]byte(dump))))
}

// TestPgDumpIsHeldToTheAddress: what an address asks of TLS holds for pg_dump as well, however the
// address is written.
func TestPgDumpIsHeldToTheAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://u:p@db/daybook?sslmode=verify-full&sslrootcert=/etc/my%20ca.pem&channel_binding=require",
		"postgresql://db/daybook?sslmode=verify-full&sslrootcert=/etc/my%20ca.pem&channel_binding=require",
		`host=db dbname=daybook sslmode=verify-full sslrootcert='/etc/my ca.pem' channel_binding=require`,
		`sslmode = 'verify-full' password='a\' sslmode=disable b' sslrootcert=/etc/my\ ca.pem channel_binding = require`,
	} {
		environment := libpqEnvironment(address, &pgx.ConnConfig{})
		assert.Contains(t, environment, "PGSSLMODE=verify-full", address)
		assert.Contains(t, environment, "PGSSLROOTCERT=/etc/my ca.pem", address)
		assert.Contains(t, environment, "PGCHANNELBINDING=require", address)
	}
}
