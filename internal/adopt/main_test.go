package adopt_test

import (
	"testing"

	"github.com/daybook-dev/daybook/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
