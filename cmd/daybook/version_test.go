package main

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/migrations"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	r := call(t.Context(), "", "version", "--json")
	require.Zero(t, r.exit, r.err)
	var v versionInfo
	require.NoError(t, json.Unmarshal([]byte(r.out), &v))
	newest, err := migrations.Newest()
	require.NoError(t, err)
	assert.Equal(t, newest, v.Schema)
	assert.Equal(t, temporal.SDKVersion, v.TemporalSDK)
	assert.Equal(t, runtime.Version(), v.Go)
	assert.NotEmpty(t, v.Version)
}
