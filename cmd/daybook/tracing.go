package main

import (
	"context"

	"github.com/daybook-dev/daybook/cmd/daybook/internal/otlp"
)

// trace sends spans from now on, if the environment asks for them. stop sends what is left.
func (a *app) trace(ctx context.Context, service string) (stop func(), err error) {
	stop, err = otlp.Start(ctx, service, readVersion().Version, a.log)
	if err != nil {
		return stop, usagef("%v", err)
	}
	return stop, nil
}
