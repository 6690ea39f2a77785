package store

import (
	"errors"
	"net"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Explain puts an error of the database into words for a log: the cause first, once, then the address, then what was being done. A pool
// names each address twice, and what it connected as before the cause.
func Explain(err error) string {
	if err == nil {
		return ""
	}
	var cause, where string
	if op, ok := errors.AsType[*net.OpError](err); ok {
		cause = op.Err.Error()
		if sys, ok := errors.AsType[*os.SyscallError](op.Err); ok {
			cause = sys.Err.Error()
		}
		if op.Addr != nil {
			where = op.Addr.String()
		}
	} else if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		cause = pg.Message + " (SQLSTATE " + pg.Code + ")"
		if LacksConnections(err) {
			cause += ". " + ConnectionsAdvice
		}
	} else {
		return err.Error()
	}
	if where != "" {
		cause += " (" + where + ")"
	}
	if doing, _, wrapped := strings.Cut(err.Error(), ": "); wrapped && !strings.HasPrefix(err.Error(), "dial ") && len(doing) < 60 &&
		!strings.Contains(doing, "failed to connect") && !strings.HasPrefix(err.Error(), "ERROR") {
		cause += ": " + doing
	}
	return cause
}

// IsLost reports whether err says that the process itself did not run for a while: its lease was reclaimed, or its session ended because it
// idled in a transaction.
func IsLost(err error) bool { return errors.Is(err, ErrLeaseLost) || SQLState(err) == "25P03" }
