package payload_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/models"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// code is what Check says of a payload; empty: it is let through.
func code(tb testing.TB, raw string) models.ErrorCode {
	tb.Helper()
	err := payload.Check([]byte(raw))
	if err == nil {
		return ""
	}
	var e *payload.Error
	if !assert.ErrorAs(tb, err, &e) {
		return "?"
	}
	sentinel := models.ErrPayloadInvalid
	if e.Code == models.CodePayloadTooLarge {
		sentinel = models.ErrPayloadTooLarge
	}
	assert.ErrorIs(tb, err, sentinel)
	return e.Code
}

// databaseCode is what the database says of it.
func databaseCode(tb testing.TB, pool *pgxpool.Pool, raw string) models.ErrorCode {
	tb.Helper()
	_, err := pool.Exec(context.Background(),
		`SELECT daybook.check_job_payload(p, p::text) FROM (SELECT $1::text::jsonb AS p) AS p`, raw)
	if err == nil {
		return ""
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		tb.Fatalf("the database did not answer: %v", err)
	}
	if pg.Code == "DB020" {
		return models.CodePayloadTooLarge
	}
	return models.CodePayloadInvalid
}

// nested is an object of that many levels.
func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
}

// nestedArrays is an object that holds arrays, that many levels altogether.
func nestedArrays(levels int) string {
	return `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + "}"
}

// keyed is an object with that many keys.
func keyed(keys int) string {
	parts := make([]string, keys)
	for i := range parts {
		parts[i] = fmt.Sprintf(`"k%d":%d`, i, i)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// spread has its keys in objects in a list.
func spread(keys int) string {
	return `{"list":[` + strings.TrimSuffix(strings.Repeat(`{"a":1},`, keys-1), ",") + `]}`
}

// sized is an object whose text has that many bytes in PostgreSQL.
func sized(bytes int) string {
	return `{"a":"` + strings.Repeat("x", bytes-len(`{"a": ""}`)) + `"}`
}

// The limits at their edges, in Go and in SQL.
func TestLimits(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const large, bad = models.CodePayloadTooLarge, models.CodePayloadInvalid
	for _, c := range []struct {
		name, raw string
		want      models.ErrorCode
	}{
		{"empty", `{}`, ""},
		{"no object", `[]`, bad},
		{"a text", `"a"`, bad},
		{"null", `null`, bad},
		{"no JSON", `{`, bad},
		{"nothing", ``, bad},
		{"two objects", `{}{}`, bad},

		{"131072 bytes", sized(models.MaxPayloadBytes), ""},
		{"131073 bytes", sized(models.MaxPayloadBytes + 1), large},
		{"131072 bytes and spaces", " \t\n\r" + sized(models.MaxPayloadBytes) + strings.Repeat(" ", 1000), ""},
		{"131072 bytes, escaped", strings.Replace(sized(models.MaxPayloadBytes), "xxx", `\u20ac`, 1), ""},
		{"131073 bytes, escaped", strings.Replace(sized(models.MaxPayloadBytes), "xx", `\u20ac`, 1), large},
		{"131072 bytes, a slash escaped", strings.Replace(sized(models.MaxPayloadBytes), "x", `\/`, 1), ""},
		{"a control character in 131072 bytes", strings.Replace(sized(models.MaxPayloadBytes), "xxxxxx", `\u001f`, 1), ""},
		{"a control character too many", strings.Replace(sized(models.MaxPayloadBytes), "xxxxx", `\u001f`, 1), large},
		{
			"a pair of surrogates in 131072 bytes", strings.Replace(sized(models.MaxPayloadBytes), "xxxx", `\ud83d\ude00`, 1),
			"",
		},
		{"a pair of surrogates too many", strings.Replace(sized(models.MaxPayloadBytes), "xxx", `\ud83d\ude00`, 1), large},
		{"a key that is given twice, once large", `{"a":"` + strings.Repeat("x", 200_000) + `","\u0061":1}`, ""},
		{"a large number", `{"a":1e131063}`, ""},
		{"a large number, one byte too long", `{"a":1e131066}`, large},
		{"a number out of range", `{"a":1e131072}`, bad},
		{"a number far out of range", `{"a":1e99999999999999999999}`, bad},
		{"a number of many decimals", `{"a":1e-16383}`, ""},
		{"a number of too many decimals", `{"a":1e-16384}`, bad},
		{"nothing of too many decimals", `{"a":0e-16384}`, bad},

		{"10 levels", nested(10), ""},
		{"11 levels", nested(11), bad},
		{"10 levels of arrays", nestedArrays(10), ""},
		{"11 levels of arrays", nestedArrays(11), bad},
		{"11 levels that are overwritten", `{"a":` + nested(11) + `,"a":1}`, ""},
		{"brackets in a text", `{"a":"[[[[[[[[[[[[[[[["}`, ""},

		{"500 keys", keyed(500), ""},
		{"501 keys", keyed(501), bad},
		{"500 keys of small objects", spread(500), ""},
		{"501 keys of small objects", spread(501), bad},
		{"501 keys of which two are one", strings.Replace(keyed(501), `"k7"`, `"k8"`, 1), ""},

		{"the character 0", `{"a":"\u0000"}`, bad},
		{"half a surrogate pair", `{"a":"\ud83d"}`, bad},
		{"the other half", `{"a":"\ude00"}`, bad},
		{"two first halves", `{"a":"\ud83d\ud83d"}`, bad},
		{"half a pair and an escape", `{"a":"\ud83d\n"}`, bad},
		{"another character after half a pair", `{"a":"\ud83dx"}`, bad},
		{"half a pair as a key", `{"\ud83d":1}`, bad},
		{"the character 0 in what is overwritten", `{"a":"\u0000","a":1}`, bad},
		{"text that is no UTF-8", "{\"a\":\"\xff\"}", bad},
	} {
		assert.Equal(t, c.want, code(t, c.raw), "%s, in Go", c.name)
		assert.Equal(t, c.want, databaseCode(t, db.Pool, c.raw), "%s, in SQL", c.name)
	}
}

// The message says what the limit is, and what to do.
func TestMessages(t *testing.T) {
	t.Parallel()
	require.EqualError(t, payload.Check([]byte(sized(models.MaxPayloadBytes+1))),
		"payload: it has 131073 bytes and may have 131072: keep what is large elsewhere, and its name in the payload")
	require.EqualError(t, payload.Check([]byte(keyed(501))), "payload: it has 501 keys and may have 500")
	require.EqualError(t, payload.Check([]byte(nested(11))), "payload: it is nested deeper than 10 levels")
}

// Go's check lets through what the database does, and says the same of the rest.
func FuzzCheck(f *testing.F) {
	db := pgtest.New(f)
	for _, seed := range []string{
		`{}`, `[]`, `{"a": [1, 2.50, -0.0, 1e3, 1.5E-3, 0.001e2, true, false, null], "b": {"c": "d\"\\\b\u001f€"}}`,
		`{"a":1,"a":{"b":[]}}`,
		`{"":"\/","\u00e4":"\ud83d\ude00"}`, `{"a":"\u0000"}`, nested(11), nestedArrays(10), keyed(30),
		`{"a":1e131064}`, `{"a":-1e131064}`, `{"a":12.5e131062}`, `{"a":0.05e131066}`, `{"a":1.0000e-16379}`,
	} {
		f.Add(seed, uint16(0), uint16(0))
		f.Add(seed, uint16(12), uint16(490))
	}
	f.Fuzz(func(t *testing.T, raw string, levels, keys uint16) {
		// What is found is put near the limits, too.
		raw = strings.Repeat(`{"a":`, int(levels%12)) + raw + strings.Repeat("}", int(levels%12))
		if n := int(keys % 600); n > 0 {
			raw = strings.TrimSuffix(keyed(n), "}") + `,"k":` + raw + "}"
		}
		if strings.Contains(raw, "\x00") {
			t.Skip("PostgreSQL takes no text with the byte 0")
		}
		assert.Equal(t, databaseCode(t, db.Pool, raw), code(t, raw), "%.500q", raw)
	})
}

// What is let through measures to the byte what the database says.
func FuzzSize(f *testing.F) {
	db := pgtest.New(f)
	for _, seed := range []string{
		`1`, `-0`, `0.50`, `1.50e1`, `-1.5e-7`, `100e-1`, `0.00e1`, `"ä\n\u0001\u007f\/"`,
		`[1,[],{}]`, `{"a":1,"b":{"a":"b","a":"cc"}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		raw = `{"a":` + raw + `}`
		if len(raw) > 100_000 || code(t, raw) != "" {
			t.Skip("it is not let through")
		}
		var bytes int
		err := db.Pool.QueryRow(context.Background(), `SELECT octet_length($1::text::jsonb::text)`, raw).Scan(&bytes)
		require.NoError(t, err, raw)
		// The edge is found by filling up to it.
		fill := models.MaxPayloadBytes - bytes - len(`, "z": ""`)
		if fill < 0 {
			t.Skip("it is large already")
		}
		filled := func(n int) string {
			return strings.TrimSuffix(strings.TrimSpace(raw), "}") + `,"z":"` + strings.Repeat("x", n) + `"}`
		}
		assert.Empty(t, code(t, filled(fill)), raw)
		assert.Equal(t, models.CodePayloadTooLarge, code(t, filled(fill+1)), raw)
	})
}
