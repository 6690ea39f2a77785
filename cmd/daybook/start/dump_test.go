package start

import (
	"testing"

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
