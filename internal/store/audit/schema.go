package audit

import (
	"regexp"
	"strings"
)

var (
	dumpedTable = regexp.MustCompile(`^(?:CREATE TABLE|ALTER TABLE ONLY|ALTER TABLE) ((?:daybook|queues)\.[a-z_]+)`)
	dumpedCheck = regexp.MustCompile(`^    CONSTRAINT ([a-z0-9_]+) CHECK`)
	dumpedKey   = regexp.MustCompile(`^    ADD CONSTRAINT ([a-z0-9_]+) ((PRIMARY KEY|UNIQUE|FOREIGN KEY|CHECK|EXCLUDE).*);$`)
	dumpedIndex = regexp.MustCompile(`^(CREATE UNIQUE INDEX ([a-z0-9_]+) ON ((?:daybook|queues)\.[a-z_]+) .*);$`)
	dumpedWith  = regexp.MustCompile(` WITH \([a-z_]+=[^)]*\)`)
	dumpedOn    = regexp.MustCompile(`^(CREATE (?:CONSTRAINT )?TRIGGER ([a-z0-9_]+) .* ON ((?:daybook|queues)\.[a-z_]+) .*);$`)
)

// GuardsOf are the constraints, unique indexes and triggers that the migrations make, read from the
// schema as they make it (migrations.Schema): what the ledger relies on, and `daybook audit` looks
// for.
func GuardsOf(schema string) []Guard {
	var all []Guard
	table := ""
	for line := range strings.Lines(schema) {
		line = strings.TrimSuffix(line, "\n")
		if m := dumpedTable.FindStringSubmatch(line); m != nil {
			table = m[1]
			continue
		}
		switch {
		case table == "daybook.schema_migrations":
			// It is goose's own.
		case dumpedCheck.MatchString(line):
			all = append(all, Guard{Kind: GuardCheck, Table: table, Name: dumpedCheck.FindStringSubmatch(line)[1]})
		case dumpedKey.MatchString(line):
			m := dumpedKey.FindStringSubmatch(line)
			g := Guard{Kind: GuardKey, Table: table, Name: m[1], Definition: withoutStorage(m[2])}
			if m[3] == "CHECK" {
				g.Kind, g.Definition = GuardCheck, ""
			}
			all = append(all, g)
		case dumpedIndex.MatchString(line):
			m := dumpedIndex.FindStringSubmatch(line)
			all = append(all, Guard{Kind: GuardIndex, Table: m[3], Name: m[2], Definition: withoutStorage(m[1])})
		case dumpedOn.MatchString(line):
			m := dumpedOn.FindStringSubmatch(line)
			all = append(all, Guard{Kind: GuardTrigger, Table: m[3], Name: m[2], Definition: m[1]})
		}
	}
	return all
}

// withoutStorage is the definition of a key or an index without the parameters of its storage, such
// as the fill factor: an operator may change them, and PostgreSQL does not write them where it
// writes the definition of a key.
func withoutStorage(definition string) string {
	return dumpedWith.ReplaceAllString(definition, "")
}
