package cli

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/dev/devstack"
)

// StopStack stops a stack also when the command was interrupted.
func StopStack(ctx context.Context, s *devstack.Stack) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return s.Stop(ctx)
}
