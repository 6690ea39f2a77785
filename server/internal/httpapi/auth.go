package httpapi

import (
	"context"
	"fmt"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server/internal/entry"
)

type principalKey struct{}

// principal is the caller, known by its token.
type principal struct{ tokens.Token }

// caller returns the request's principal; nil: the operation needs no token.
func caller(ctx context.Context) *principal {
	p, _ := ctx.Value(principalKey{}).(*principal)
	return p
}

// authenticate lets an operation be called only with a token that has its scope.
func (s *server) authenticate(ctx huma.Context, next func(huma.Context)) {
	scope, _ := ctx.Operation().Metadata[scopeKey].(tokens.Scope)
	if scope == "" {
		next(ctx)
		return
	}
	p, err := s.authorize(ctx.Context(), ctx.Header("Authorization"), scope)
	if err != nil {
		s.refuse(ctx, err)
		return
	}
	next(huma.WithValue(ctx, principalKey{}, p))
}

func (s *server) authorize(ctx context.Context, header string, scope tokens.Scope) (*principal, error) {
	scheme, secret, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return nil, errNoToken
	}
	token, err := tokens.Find(ctx, s.pool, strings.TrimSpace(secret))
	if err != nil {
		return nil, err
	}
	// What the token may not do counts as well: it costs the same to find out.
	if wait := entry.Note(ctx, &token); wait > 0 {
		return nil, tooMany(wait, "the token", token.RequestsPerMinute, "requests")
	}
	if !token.Allows(scope) {
		return nil, fmt.Errorf("%w: this one has not %q", errScope, scope)
	}
	return &principal{token}, nil
}

// mayEnqueue counts a job that the caller enqueues, and refuses a type that the token does not
// allow.
func (s *server) mayEnqueue(ctx context.Context, jobType string) error {
	if err := s.allowsType(ctx, jobType); err != nil {
		return err
	}
	return s.limits.job(&caller(ctx).Token)
}

// allowsType refuses a type that the token does not allow.
func (s *server) allowsType(ctx context.Context, jobType string) error {
	return caller(ctx).CheckType(jobType, s.TypeName)
}

// reach returns the organization that a request is about: the one that it names, or that of the
// token. The empty organization is all of them. An organization that the token does not reach does
// not exist for it.
func (p *principal) reach(org string) (string, error) {
	switch {
	case p.OrgID == nil:
		return org, nil
	case org == "" || org == *p.OrgID:
		return *p.OrgID, nil
	}
	return "", fmt.Errorf("%w: %s", store.ErrOrganizationNotFound, org)
}

// reachOne is reach for requests that are about one organization.
func (p *principal) reachOne(org, location string) (string, error) {
	org, err := p.reach(org)
	if err == nil && org == "" {
		err = invalid(location, "name the organization: the token is for all")
	}
	return org, err
}
