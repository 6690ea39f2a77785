package console

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// tokenLine is a token with the button that revokes it.
type tokenLine struct {
	tokens.Token
	// Own is the one that the viewer signed in with.
	Own    bool
	Revoke *button
}

// tokens adds the list of tokens.
func (c *console) tokens() {
	c.addToMenu(menuEntry{Group: "Operate", Name: "Tokens", Path: "tokens"})
	c.page("GET "+Root+"tokens", tokens.ScopeRead, c.tokenList)
	c.action(Root+"tokens/{id}/revoke", tokens.ScopeOperate, "tokens.revoke", c.revokeToken)
}

func (c *console) tokenList(ctx context.Context, r *request) (*view, error) {
	org, err := r.org()
	if err != nil {
		return nil, err
	}
	list, err := tokens.List(ctx, c.Pool, org)
	if err != nil {
		return nil, err
	}
	lines := make([]tokenLine, len(list))
	for i, t := range list {
		lines[i] = tokenLine{Token: t, Own: t.ID == r.Token.ID}
		if t.RevokedAt == nil && r.Token.OrgID == nil && r.Token.Allows(tokens.ScopeOperate) {
			ask := "Its holder is refused from now on, and signed out."
			if lines[i].Own {
				ask = "This is the token that you are signed in with: you are signed out."
			}
			lines[i].Revoke = &button{
				Action: Root + joinPath("tokens", t.ID, "revoke"), Label: "Revoke", Tone: "danger",
				Next: r.here(), Confirm: ask,
			}
		}
	}
	return &view{
		Title: "Tokens", Template: "tokens", Nav: "tokens", Data: map[string]any{"Lines": lines},
		Lead: "Who may use the API and this console. A token is shown once, when `daybook tokens create` makes it.",
	}, nil
}

func (c *console) revokeToken(ctx context.Context, r *request) (done, error) {
	id := r.PathValue("id")
	d := done{Subject: id}
	if err := wholeInstance(r); err != nil {
		return d, err
	}
	err := store.Begin(ctx, c.Pool, func(tx pgx.Tx) error {
		t, changed, err := tokens.Revoke(ctx, tx, id)
		if err != nil {
			return err
		}
		d.Text = fmt.Sprintf("Token %s is revoked.", t.Name)
		d.unless(changed, "token "+t.Name+" is revoked already")
		return actions.Note(ctx, tx, asText(t.OrgID), id, map[string]any{"name": t.Name, "changed": changed})
	})
	return d, err
}
