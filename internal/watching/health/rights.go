package health

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store/diagnosis"
	"github.com/daybook-dev/daybook/migrations"
)

// rights looks whether Daybook's roles have what `daybook migrate up --roles` gives them.
func (p *probe) rights(ctx context.Context, tx pgx.Tx) (found []Finding, err error) {
	const named = 5
	lacking, err := migrations.VerifyRoles(ctx, tx)
	for _, l := range lacking {
		f := Finding{Code: RoleLacksRights, Severity: Warning, Count: int64(len(l.Rights)), Example: l.Role}
		if l.Connected {
			f.Severity = Critical
		}
		rest := ""
		if more := len(l.Rights) - named; more > 0 {
			rest = fmt.Sprintf(" and %d more", more)
		}
		f.Says = fmt.Sprintf("The role %s lacks %s%s; a worker whose role loses rights pauses.", l.Role,
			strings.Join(l.Rights[:min(named, len(l.Rights))], ", "), rest)
		f.Todo = "Grant them again: `daybook migrate up --roles` as the schema's owner. Running workers go on by " +
			"themselves."
		found = append(found, f)
	}
	return found, err
}

// token looks whether `daybook serve` can be used at all.
func (p *probe) token(ctx context.Context, tx pgx.Tx) ([]Finding, error) {
	has, err := diagnosis.HasToken(ctx, tx)
	if err != nil || has {
		return nil, err
	}
	return []Finding{{
		Code: NoToken, Severity: Info,
		Says: "There is no valid token: no program can use the HTTP API, and no person the console.",
		Todo: "If `daybook serve` is used, make one: `daybook tokens create --name operators --scope read,operate " +
			"--all-orgs`.",
	}}, nil
}
