package migrations

import (
	_ "embed" // the dumped schema
	"regexp"
	"strings"
	"sync"

	"github.com/daybook-dev/daybook/internal/store"
)

// dumped is the schema as the migrations make it: `make schema` writes it, and a test compares it with a new database.
//
//go:embed schema.sql
var dumped string

var (
	dumpedTable = regexp.MustCompile(`^(?:CREATE TABLE|ALTER TABLE ONLY|ALTER TABLE) daybook\.([a-z_]+)`)
	dumpedCheck = regexp.MustCompile(`^    CONSTRAINT ([a-z0-9_]+) CHECK`)
	dumpedKey   = regexp.MustCompile(`^    ADD CONSTRAINT ([a-z0-9_]+) ((PRIMARY KEY|UNIQUE|FOREIGN KEY|CHECK|EXCLUDE).*);$`)
	dumpedIndex = regexp.MustCompile(`^(CREATE UNIQUE INDEX ([a-z0-9_]+) ON daybook\.([a-z_]+) .*);$`)
	dumpedOn    = regexp.MustCompile(`^(CREATE (?:CONSTRAINT )?TRIGGER ([a-z0-9_]+) .* ON daybook\.([a-z_]+) .*);$`)
)

// Guards are the constraints, unique indexes and triggers that the migrations make: what the ledger relies on, and `daybook audit`
// looks for.
func Guards() []store.Guard { return guards() }

var guards = sync.OnceValue(func() []store.Guard {
	var all []store.Guard
	table := ""
	for line := range strings.Lines(dumped) {
		line = strings.TrimSuffix(line, "\n")
		if m := dumpedTable.FindStringSubmatch(line); m != nil {
			table = m[1]
			continue
		}
		switch {
		case table == "schema_migrations":
			// It is goose's own.
		case dumpedCheck.MatchString(line):
			all = append(all, store.Guard{Kind: store.GuardCheck, Table: table, Name: dumpedCheck.FindStringSubmatch(line)[1]})
		case dumpedKey.MatchString(line):
			m := dumpedKey.FindStringSubmatch(line)
			g := store.Guard{Kind: store.GuardKey, Table: table, Name: m[1], Definition: m[2]}
			if m[3] == "CHECK" {
				g.Kind, g.Definition = store.GuardCheck, ""
			}
			all = append(all, g)
		case dumpedIndex.MatchString(line):
			m := dumpedIndex.FindStringSubmatch(line)
			all = append(all, store.Guard{Kind: store.GuardIndex, Table: m[3], Name: m[2], Definition: m[1]})
		case dumpedOn.MatchString(line):
			m := dumpedOn.FindStringSubmatch(line)
			all = append(all, store.Guard{Kind: store.GuardTrigger, Table: m[3], Name: m[2], Definition: m[1]})
		}
	}
	return all
})
