package hosts

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// SideBySide has a pool that is made of the configuration ask the servers of its address side by
// side, and connect to one that answers. The driver tries them one after the other, and waits for
// each. Call it last: it wraps BeforeConnect.
func SideBySide(pool *pgxpool.Config) {
	asking := pool.Copy()
	pool.BeforeConnect = func(ctx context.Context, config *pgx.ConnConfig) error {
		if asking.BeforeConnect != nil {
			if err := asking.BeforeConnect(ctx, config); err != nil {
				return err
			}
		}
		return choose(ctx, asking, config)
	}
	if Several(pool.ConnConfig) && pool.ConnConfig.ConnectTimeout == 0 {
		pool.ConnConfig.ConnectTimeout = askLimit
	}
}

// Connect connects as a pool does, with its hooks: they may ask for a password that is valid now. Of
// several servers it connects to one that answers.
func Connect(ctx context.Context, pool *pgxpool.Config) (*pgx.Conn, error) {
	conn, err := dial(ctx, pool, pool.ConnConfig.Copy())
	if err != nil || pool.AfterConnect == nil {
		return conn, err
	}
	if err := pool.AfterConnect(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
}

// dial connects without the hook that comes after it.
func dial(ctx context.Context, pool *pgxpool.Config, config *pgx.ConnConfig) (*pgx.Conn, error) {
	if pool.BeforeConnect != nil {
		if err := pool.BeforeConnect(ctx, config); err != nil {
			return nil, err
		}
	}
	if err := choose(ctx, pool, config); err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config)
}

// choose puts the server in front that is best connected to, and the others behind it, which are
// tried if it has fallen silent since.
func choose(ctx context.Context, pool *pgxpool.Config, config *pgx.ConnConfig) error {
	servers := serversOf(config)
	if len(servers) == 1 {
		return nil
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = askLimit
	}
	front, err := of(config).find(ctx, pool)
	switch {
	case err == nil:
	case IsNone(err) && config.ConnectTimeout > askLimit:
		return nil // the address itself gives each server more time
	default:
		return err
	}
	var ways, others []*pgconn.FallbackConfig
	for _, s := range servers {
		if s.name == front {
			ways = s.ways
		} else {
			others = append(others, s.ways...)
		}
	}
	setWays(config, append(slices.Clip(ways), others...))
	return nil
}
