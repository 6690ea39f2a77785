package start

import (
	"context"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/otlp"
)

// trace sends spans from now on, if the environment asks for them. stop sends what is left.
func trace(ctx context.Context, a *cli.App, service string) (stop func(), err error) {
	stop, err = otlp.Start(ctx, service, a.Version, a.Log)
	if err != nil {
		return stop, cli.Usagef("%v", err)
	}
	return stop, nil
}
