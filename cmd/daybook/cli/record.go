package cli

import (
	"cmp"
	"context"
	"errors"
	"os/user"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
)

// mayRecord refuses an action of the context that the role may not write into the log: one that
// Temporal does cannot be undone when the database refuses the row afterwards. While the database
// does not answer, operators can do what they have to. It says when Daybook had nothing of the
// organization.
func (a *App) mayRecord(ctx context.Context) error {
	if !actions.Begun(ctx) || a.DatabaseURL == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	pool, err := a.Pool(ctx, 1)
	if err != nil {
		return err
	}
	defer ClosePool(pool)
	err = RequireRight(ctx, pool, "INSERT", "daybook.actions")
	if errors.Is(err, ErrRoleLacksRight) || store.RefusesConnection(err) {
		return err
	}
	return a.KnowsOrganization(ctx, pool)
}

// SystemUser is who runs the command, as far as the operating system says.
func SystemUser() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return cmp.Or(u.Username, u.Uid, "unknown")
}
