package store

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// SourceDaybook is the name of the source that every worker reads: daybook.documents.
const SourceDaybook = "daybook"

// Abilities are what a worker reads and has, by name. It works the accounting jobs of those organizations whose source it
// reads and whose hooks it has, and leaves all others alone.
type Abilities struct {
	Sources, Hooks []string
}

// name is what a source or a hook may be called. The columns' checks say the same.
var name = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}$`)

// CheckName returns ErrInvalid for what is no name of a source or a hook.
func CheckName(s string) error {
	if !name.MatchString(s) {
		return fmt.Errorf("%q: a source or hook is named by 1 to 63 of a-z, 0-9, '_', '.' and '-', beginning with a letter or digit: %w", s, ErrInvalid)
	}
	return nil
}

// check refuses names that cannot stand in a statement.
func (a Abilities) check() error {
	for _, s := range slices.Concat(a.Sources, a.Hooks) {
		if err := CheckName(s); err != nil {
			return err
		}
	}
	return nil
}

// needsOfOrganization are an organization's source and hooks, where o is its row or null.
const needsOfOrganization = `coalesce(o.source, (SELECT d.source FROM daybook.defaults d)) AS source, coalesce(o.hooks, (SELECT d.hooks FROM daybook.defaults d)) AS hooks`

// covers is the condition that a worker with these abilities may work an organization's documents, where o is its row or
// null. The names are part of the text: it is the same for as long as the worker lives, and every statement about leases
// keeps its parameters for what differs from call to call. CheckName lets nothing through that would have to be quoted.
func (a Abilities) covers() string {
	return `coalesce(o.source, (SELECT d.source FROM daybook.defaults d)) = ANY (` + literal(a.Sources) + `)` +
		` AND coalesce(o.hooks, (SELECT d.hooks FROM daybook.defaults d)) <@ ` + literal(a.Hooks)
}

// literal is an array of names in SQL.
func literal(names []string) string { return `'{` + strings.Join(names, ",") + `}'::text[]` }

// AccountingFor is the kind Accounting as a worker with these abilities sees it.
func AccountingFor(a Abilities) (*Kind, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	return accounting(a), nil
}
