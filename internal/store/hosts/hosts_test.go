package hosts_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store/hosts"
)

func TestSeveral(t *testing.T) {
	t.Parallel()
	for address, several := range map[string]bool{
		"postgres://u@a/d":                                   false,
		"postgres://u@a/d?sslmode=prefer":                    false, // twice: with TLS and without
		"postgres://u@a:5432,a:5432/d":                       false,
		"postgres://u@a:5432,a:5433/d":                       true,
		"postgres://u@a,b/d?target_session_attrs=read-write": true,
	} {
		config, err := pgx.ParseConfig(address)
		require.NoError(t, err)
		assert.Equal(t, several, hosts.Several(config), address)
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	primary := func(timeline int64) hosts.Host { return hosts.Host{Name: "a:1", Timeline: timeline} }
	standby := func(timeline int64) hosts.Host { return hosts.Host{Name: "b:1", Standby: true, Timeline: timeline} }
	silent := hosts.Host{Name: "b:1", Err: errors.New("timeout")}
	for says, all := range map[string][]hosts.Host{
		"a:1 (timeline 1) and a:1 (timeline 2) take writes":                                           {primary(1), primary(2)},
		"a:1 takes writes on timeline 1, and b:1 is on timeline 2: another server was promoted since": {primary(1), standby(2)},
	} {
		assert.Equal(t, says, hosts.Split(all))
	}
	for _, all := range [][]hosts.Host{
		{primary(2), standby(2)},
		{primary(2), standby(1)}, // it follows late
		{primary(1), silent},
		{primary(0), standby(2)}, // it does not say
		{{Name: "a:1", Timeline: 1, Started: 5}, {Name: "b:1", Timeline: 1, Started: 5}}, // two proxies
		{standby(1), standby(2)},
		{silent, silent},
	} {
		assert.Empty(t, hosts.Split(all), "%+v", all)
	}
}
