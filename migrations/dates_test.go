package migrations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/models"
)

// The database itself refuses dates that not every program can read, with the bounds that Go has.
func TestDatesOutsideOfTheRange(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	first, last := fmt.Sprintf("%d-01-01", models.FirstYear), fmt.Sprintf("%d-12-31", models.LastYear)
	for row, columns := range map[string][]string{
		`INSERT INTO daybook.documents (org_id, id, type, direction, currency, content, issue_date, value_date)
		 VALUES ('o', 'd', 'invoice', 'out', 'EUR', '{}', '$issue_date', '$value_date')`: {"issue_date", "value_date"},
		`INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, entry_count, job_id, attempt, document_date, posting_date)
		 VALUES (1, 'o', 'd', 1, 1, 'post', 0, 'j', 1, '$document_date', '$posting_date')`: {
			"document_date",
			"posting_date",
		},
		`WITH o AS (INSERT INTO daybook.organizations (id) VALUES ('o'))
		 INSERT INTO daybook.periods (org_id, starts_on, ends_on) VALUES ('o', '$starts_on', '$ends_on')`: {
			"starts_on",
			"ends_on",
		},
	} {
		for _, column := range columns {
			for _, day := range []string{
				"0001-01-01 BC", "0001-01-01", "1899-12-31", "3000-01-01", "9999-12-31", "infinity",
				"-infinity",
			} {
				err := attempt(t, db, with(row, columns, column, day, first, last))
				require.ErrorContains(t, err, "dates_are_bookable", "%s %s", column, day)
			}
		}
		require.NoError(t, attempt(t, db, with(row, columns, "", "", first, last)), row)
	}
}

// with fills the columns of a row: the first and the last day, and in one column another day.
func with(row string, columns []string, column, day, first, last string) string {
	for i, c := range columns {
		value := []string{first, last}[i]
		if c == column {
			value = day
		}
		row = strings.Replace(row, "$"+c, value, 1)
	}
	return row
}
