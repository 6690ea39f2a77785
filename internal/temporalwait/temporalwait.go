// Package temporalwait waits for a Temporal server that cannot be reached yet, and tells that from
// one that refuses the caller: the workers and the command line wait alike.
package temporalwait

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	firstPause   = time.Second
	slowestPause = 30 * time.Second
	// attemptTimeout is how long one attempt may take.
	attemptTimeout = 10 * time.Second
)

// Until calls try until it succeeds, until its error says that another attempt is of no use
// (Refuses), or until ctx ends, whose error it then returns. Between two attempts it logs and
// pauses, a second first and half a minute at most; address is for the log, and may be empty.
func Until(ctx context.Context, log *slog.Logger, address string, try func(ctx context.Context) error) error {
	for pause := firstPause; ; pause = min(2*pause, slowestPause) {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		err := try(attempt)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case Refuses(err):
			return err
		}
		args := []any{"error", err, "in", pause.String()}
		if address != "" {
			args = append([]any{"address", address}, args...)
		}
		log.Warn("Temporal is unavailable; trying again", args...)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// RefusesTLS reports whether one side does not take the other's certificate, or one speaks TLS and
// the other does not. gRPC has no more of it than its text.
func RefusesTLS(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "x509: "))
}

// Refuses reports whether Temporal answered and refuses the caller: its namespace, its rights, its
// TLS settings or what it asks for is wrong.
func Refuses(err error) bool {
	var denied *serviceerror.PermissionDenied
	var invalid *serviceerror.InvalidArgument
	if NoNamespace(err) || RefusesTLS(err) || errors.As(err, &denied) || errors.As(err, &invalid) {
		return true
	}
	var answered interface{ GRPCStatus() *status.Status }
	return errors.As(err, &answered) && answered.GRPCStatus().Code() == codes.Unauthenticated
}

// Unavailable reports whether err says that Temporal did not answer in time, or asks to try again
// later.
func Unavailable(err error) bool {
	var answered serviceerror.ServiceError
	if !errors.As(err, &answered) {
		return false
	}
	switch answered.Status().Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted:
		return true
	default:
		return false
	}
}

// NoNamespace reports whether Temporal has no namespace of that name.
func NoNamespace(err error) bool {
	var missing *serviceerror.NamespaceNotFound
	var notFound *serviceerror.NotFound
	return errors.As(err, &missing) || errors.As(err, &notFound)
}
