package queue

import (
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store/hosts"
)

// SideBySide has a pool ask the servers of its address side by side, and connect within a few
// seconds to one that answers and is what target_session_attrs asks for, the one that was promoted
// last before others. By itself the driver tries them one after the other, and waits for each, for
// two minutes if the address has no connect_timeout. An address of one server is left as it is.
//
//	config, err := pgxpool.ParseConfig("postgres://app@a,b/shop?target_session_attrs=read-write")
//	queue.SideBySide(config)
//	pool, err := pgxpool.NewWithConfig(ctx, config)
//
// Call it last: it wraps BeforeConnect.
func SideBySide(config *pgxpool.Config) { hosts.SideBySide(config) }
