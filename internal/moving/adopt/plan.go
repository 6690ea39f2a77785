package adopt

import (
	"cmp"
	"fmt"
	"slices"
)

// Checksum is the sum of the hashes of rows, modulo 2^64: it does not depend on their order, and
// the sums of two sets add up to that of both. A row's hash is PostgreSQL's hashtextextended of
// what names the row, with the seed 0.
type Checksum uint64

// String is the sum in hex.
func (c Checksum) String() string { return fmt.Sprintf("%016x", uint64(c)) }

// MarshalText implements encoding.TextMarshaler.
func (c Checksum) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Group counts rows of one organization in one state.
type Group struct {
	OrgID    string   `json:"org_id"`
	State    string   `json:"state"`
	Rows     int64    `json:"rows"`
	Checksum Checksum `json:"checksum"`
}

// Groups are counts by organization and state, in this order.
type Groups []Group

// Add counts one row with its hash.
func (g *Groups) Add(org, state string, hash int64) {
	g.Merge(Groups{{OrgID: org, State: state, Rows: 1, Checksum: Checksum(hash)}})
}

// Merge adds other counts.
func (g *Groups) Merge(others Groups) {
	for _, o := range others {
		i, found := slices.BinarySearchFunc(*g, o, compareGroups)
		if !found {
			*g = slices.Insert(*g, i, o)
			continue
		}
		(*g)[i].Rows += o.Rows
		(*g)[i].Checksum += o.Checksum
	}
}

// Rows is how many rows there are in all.
func (g Groups) Rows() (n int64) {
	for _, one := range g {
		n += one.Rows
	}
	return n
}

// ByState sums the organizations up, in the order of the states' names.
func (g Groups) ByState() Groups {
	var sums Groups
	for _, one := range g {
		one.OrgID = ""
		sums.Merge(Groups{one})
	}
	return sums
}

func compareGroups(a, b Group) int {
	return cmp.Or(cmp.Compare(a.OrgID, b.OrgID), cmp.Compare(a.State, b.State))
}

// maxExamples is how many rows a problem names.
const maxExamples = 5

// Problem is something that a person should know before, or has to see to.
type Problem struct {
	// Code names it for programs, such as COLUMN_MISSING; docs/adopting.md has a row for each.
	Code string `json:"code"`
	// Blocks says that nothing is adopted while it is so.
	Blocks bool `json:"blocks,omitempty"`
	// Rows counts the rows that it is about; 0: it is about the whole table.
	Rows int64 `json:"rows,omitempty"`
	// Detail says what is wrong, and what to do.
	Detail string `json:"detail"`
	// Examples name the first rows, as organization/id.
	Examples []string `json:"examples,omitempty"`
}

// Problems are counted by code and detail.
type Problems []Problem

// addOwner says what the table's owner can do when Daybook writes to it. PostgreSQL runs a table's
// triggers, and functions of its constraints and indexes, with the rights of the one who writes.
func (p *Problems) addOwner(t Table) {
	if t.OtherOwner != "" {
		p.Add("OTHER_OWNER", fmt.Sprintf("%s belongs to %s, who can run code with the rights of the owner of the schema "+
			"daybook by its triggers: adopt it only if that role is trusted so", t.Name, t.OtherOwner), "")
	}
}

// addGenerated refuses columns that the table computes, where Daybook cannot do without their
// values: those that it writes, and those that its trigger reads, because a virtual column is null
// in a trigger's rows.
func (p *Problems) addGenerated(t Table, read, written []string) {
	for _, c := range t.Columns {
		switch {
		case c.Generated != "" && slices.Contains(written, c.Name):
			p.Block("COLUMN_GENERATED", fmt.Sprintf("%s computes %s, which Daybook writes to mark rows: make it a column "+
				"that the program writes", t.Name, c.Name))
		case c.Generated == "v" && slices.Contains(read, c.Name):
			p.Block("COLUMN_GENERATED", fmt.Sprintf("%s computes %s when it is read (VIRTUAL), so that it is null in a "+
				"trigger, and each write of the old program would fail: drop the column, and add it again as "+
				"GENERATED ALWAYS AS (…) STORED", t.Name, c.Name))
		}
	}
}

// Add counts a problem of the row that example names; empty: of the whole table.
func (p *Problems) Add(code, detail, example string) {
	i := slices.IndexFunc(*p, func(one Problem) bool { return one.Code == code && one.Detail == detail })
	if i < 0 {
		*p = append(*p, Problem{Code: code, Detail: detail})
		i = len(*p) - 1
	}
	if one := &(*p)[i]; example != "" {
		one.Rows++
		if len(one.Examples) < maxExamples {
			one.Examples = append(one.Examples, example)
		}
	}
}

// Block adds a problem that keeps everything from being adopted.
func (p *Problems) Block(code, detail string) {
	*p = append(*p, Problem{Code: code, Detail: detail, Blocks: true})
}

// Merge adds other problems.
func (p *Problems) Merge(others Problems) {
	for _, o := range others {
		i := slices.IndexFunc(*p, func(one Problem) bool { return one.Code == o.Code && one.Detail == o.Detail })
		if i < 0 {
			*p = append(*p, o)
			continue
		}
		one := &(*p)[i]
		one.Rows += o.Rows
		one.Examples = append(one.Examples, o.Examples[:min(len(o.Examples), maxExamples-len(one.Examples))]...)
	}
}

// Blocking are those that keep everything from being adopted.
func (p Problems) Blocking() Problems {
	return slices.DeleteFunc(slices.Clone(p), func(one Problem) bool { return !one.Blocks })
}

// Plan is what an adoption found and would do. Nothing was changed to make it.
type Plan struct {
	// Table is the legacy table with its schema.
	Table string `json:"table"`
	// Missing are columns that the table lacks and that have a default here; Ignored are columns that
	// Daybook does not read.
	Missing []string `json:"missing_columns,omitempty"`
	Ignored []string `json:"ignored_columns,omitempty"`
	// Found are the rows that the legacy queue holds. Each is in Take or in Leave.
	Found Groups `json:"found"`
	// Take are those that would be adopted, Leave those that stay with the legacy queue for now.
	Take  Groups `json:"take"`
	Leave Groups `json:"leave"`
	// Held are the rows that Daybook holds already, by the state in which they were adopted.
	Held     Groups   `json:"held"`
	Problems Problems `json:"problems"`
	// Notes say what else would be done, one sentence each.
	Notes []string `json:"notes,omitempty"`
}

// Report is what an adoption, or its way back, did.
type Report struct {
	Table string `json:"table"`
	// Done are the rows that changed hands, Left those that did not.
	Done     Groups   `json:"done"`
	Left     Groups   `json:"left"`
	Problems Problems `json:"problems"`
	// Notes say what else was done, one sentence each.
	Notes []string `json:"notes,omitempty"`
}

// Verification compares what the legacy queue has with what Daybook holds.
type Verification struct {
	Table string `json:"table"`
	// Compared has a row for each organization and state in which rows were adopted.
	Compared []Comparison `json:"compared"`
	// Left are the rows that the legacy queue still holds.
	Left     Groups   `json:"left"`
	Problems Problems `json:"problems"`
	// Sound says that nothing differs.
	Sound bool `json:"sound"`
}

// Comparison is one line of a Verification.
type Comparison struct {
	OrgID string `json:"org_id"`
	State string `json:"state"`
	// Legacy are the rows as the legacy table has them, Held what Daybook has of them.
	LegacyRows     int64    `json:"legacy_rows"`
	LegacyChecksum Checksum `json:"legacy_checksum"`
	HeldRows       int64    `json:"held_rows"`
	HeldChecksum   Checksum `json:"held_checksum"`
	Same           bool     `json:"same"`
}

// Compare compares counts and checksums group by group.
func Compare(legacy, held Groups) []Comparison {
	var all Groups
	all.Merge(legacy)
	all.Merge(held)
	find := func(in Groups, like Group) Group {
		if i, found := slices.BinarySearchFunc(in, like, compareGroups); found {
			return in[i]
		}
		return Group{}
	}
	compared := make([]Comparison, 0, len(all))
	for _, one := range all {
		l, h := find(legacy, one), find(held, one)
		compared = append(compared, Comparison{
			OrgID: one.OrgID, State: one.State, LegacyRows: l.Rows, LegacyChecksum: l.Checksum, HeldRows: h.Rows,
			HeldChecksum: h.Checksum,
			Same:         l.Rows == h.Rows && l.Checksum == h.Checksum,
		})
	}
	return compared
}
