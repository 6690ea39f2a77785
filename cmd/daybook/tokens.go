package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/store"
)

func tokensCommand(a *app) *cobra.Command {
	command := &cobra.Command{Use: "tokens", Short: "Create, list and revoke the tokens of the HTTP API"}
	command.AddCommand(tokensCreateCommand(a), tokensListCommand(a), tokensRevokeCommand(a))
	return command
}

// createdToken is a token with its secret, for programs.
type createdToken struct {
	store.Token
	Secret string `json:"token"`
}

func tokensCreateCommand(a *app) *cobra.Command {
	var org, name string
	var scopes []string
	var all bool
	command := &cobra.Command{
		Use:   "create --name NAME --scope SCOPE[,SCOPE…] (--org ORG | --all-orgs)",
		Short: "Create a token and print it, once",
		Long: "Creates a token for one organization or for all and prints it. It is shown this once: the database keeps only a hash of it.\n" +
			"Scopes: read (look at jobs, documents, the ledger), enqueue (ask for work), operate (retry, cancel, run). None contains another.",
		Example: "  daybook tokens create --name shop --scope enqueue --org acme\n  daybook tokens create --name ops --scope read,operate --all-orgs",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if (org == "") != all {
				return usagef("give either --org or --all-orgs")
			}
			if strings.TrimSpace(name) == "" {
				return usagef("--name must say what the token is for")
			}
			wanted, err := parseScopes(scopes)
			if err != nil {
				return err
			}
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			token, secret, err := store.CreateToken(c.Context(), db.Pool, org, name, wanted)
			if err != nil {
				return err
			}
			return a.emit(createdToken{Token: token, Secret: secret}, func(w io.Writer) error {
				a.say("Token %s for %s. Keep it now: it is not shown again.", token.ID, tokenReach(&token))
				_, err := fmt.Fprintln(w, secret)
				return err
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&name, "name", "", "what the token is for")
	flags.StringSliceVar(&scopes, "scope", nil, "what it allows: read, enqueue, operate; several with commas or repeated")
	flags.StringVar(&org, "org", "", "the only organization that it reaches")
	flags.BoolVar(&all, "all-orgs", false, "it reaches every organization")
	for _, required := range []string{"name", "scope"} {
		_ = command.MarkFlagRequired(required)
	}
	return command
}

func parseScopes(names []string) ([]store.Scope, error) {
	var scopes []store.Scope
	for _, name := range names {
		scope := store.Scope(strings.TrimSpace(name))
		if !slices.Contains(store.Scopes(), scope) {
			return nil, usagef("--scope %q: want read, enqueue or operate", name)
		}
		if !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes, nil
}

func tokensListCommand(a *app) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "list",
		Short: "List tokens, the newest first; what they consist of is not kept",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			tokens, err := store.ListTokens(c.Context(), db.Pool, org)
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"tokens": tokens}, func(w io.Writer) error { return a.printTokens(w, tokens) })
		},
	}
	command.Flags().StringVar(&org, "org", "", "only of this organization")
	return command
}

func (a *app) printTokens(w io.Writer, tokens []store.Token) error {
	t := newTable("ID", "NAME", "REACHES", "SCOPES", "CREATED", "LAST USED", "REVOKED")
	for i := range tokens {
		token := &tokens[i]
		scopes := make([]string, len(token.Scopes))
		for i, s := range token.Scopes {
			scopes[i] = string(s)
		}
		t.add(token.ID, token.Name, tokenReach(token), strings.Join(scopes, ","), formatTime(token.CreatedAt), optionalTime(token.LastUsedAt),
			optionalTime(token.RevokedAt))
	}
	return a.print(w, t)
}

func tokenReach(t *store.Token) string {
	if t.OrgID == nil {
		return "all organizations"
	}
	return *t.OrgID
}

func tokensRevokeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Have a token refused from now on",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			token, err := store.RevokeToken(c.Context(), db.Pool, args[0])
			if err != nil {
				return err
			}
			return a.emit(token, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "revoked %s (%s)\n", token.ID, oneLine(token.Name))
				return err
			})
		},
	}
}
