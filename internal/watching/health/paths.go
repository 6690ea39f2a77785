package health

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store/diagnosis"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// paths looks who could have workers call functions and operators in place of PostgreSQL's own: a
// role that may create them in a schema of the workers' search path.
func (p *probe) paths(ctx context.Context, tx pgx.Tx) (found []Finding, err error) {
	creators, err := diagnosis.Creators(ctx, tx)
	for _, c := range creators {
		f := Finding{Code: SearchPathOpen, Severity: Info}
		who, from := "The role "+c.Grantee, c.Grantee
		if c.Grantee == "" {
			f.Severity, who, from = Warning, "Every role", "PUBLIC"
		}
		role := "the role " + c.Roles[0]
		if len(c.Roles) > 1 {
			role = "the roles " + phrase.And(c.Roles)
		}
		f.Says = fmt.Sprintf("%s may create objects in the schema %s, which is on the search path of %s: a function or "+
			"an operator there may be called in place of PostgreSQL's own, with the rights of a worker.", who, c.Schema, role)
		f.Todo = fmt.Sprintf("As the schema's owner: `REVOKE CREATE ON SCHEMA %s FROM %s`. Or take it off the path: "+
			"`ALTER ROLE %s IN DATABASE %s SET search_path = %s`", c.Schema, from, c.Roles[0], c.Database, c.Rest)
		if len(c.Roles) > 1 {
			f.Todo += ", and so for the others"
		}
		f.Todo += "."
		found = append(found, f)
	}
	return found, err
}
