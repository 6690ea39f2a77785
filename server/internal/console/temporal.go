package console

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/daybook-dev/daybook/failure"
)

// temporalTimeout is how long a page waits for Temporal.
const temporalTimeout = 4 * time.Second

var (
	errTemporalDown = failure.New(failure.TemporalUnavailable, "Temporal does not answer")
	errNoWorkflow   = failure.New(failure.NotFound, "no such workflow runs: start it with `daybook workflow start`")
	errRefusedByRun = failure.New(failure.InvalidInput, "the workflow refuses this")
	errOneOrg       = failure.New(failure.Forbidden, "this is about all organizations, and the token reaches one")
)

// temporalError gives an error of Temporal a class, unless it has one.
func temporalError(err error) error {
	switch {
	case err == nil || failure.Of(err) != nil:
		return err
	case errors.As(err, new(*serviceerror.NotFound)):
		return errNoWorkflow
	case errors.As(err, new(*serviceerror.InvalidArgument)):
		return fmt.Errorf("%w: %s", errRefusedByRun, err.Error())
	}
	return fmt.Errorf("%w: %s", errTemporalDown, err.Error())
}

// withTemporal asks Temporal something, for a while.
func (c *console) withTemporal(ctx context.Context, ask func(ctx context.Context) error) error {
	if c.Temporal == nil {
		return errNoTemporal
	}
	ctx, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	return temporalError(ask(ctx))
}

// wholeInstance refuses a token of one organization.
func wholeInstance(r *request) error {
	if r.Token.OrgID != nil {
		return fmt.Errorf("%w, %s: sign in with a token for all organizations", errOneOrg, *r.Token.OrgID)
	}
	return nil
}
