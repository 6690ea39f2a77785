package start

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/tokens"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

func tokensCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{Use: "tokens", Short: "Create, list and revoke the tokens of the HTTP API"}
	command.AddCommand(tokensCreateCommand(a), tokensListCommand(a), tokensRevokeCommand(a))
	return command
}

// CreatedToken is a token with its secret, for programs.
type CreatedToken struct {
	tokens.Token
	Secret string `json:"token"`
}

func tokensCreateCommand(a *cli.App) *cobra.Command {
	var n tokens.New
	var scopes []string
	var all bool
	command := &cobra.Command{
		Use:   "create --name NAME --scope SCOPE[,SCOPE…] (--org ORG | --all-orgs)",
		Short: "Create a token and print it, once",
		Long: "Creates a token for one organization or for all and prints it. It is shown this once: the database keeps only a hash of it.\n" +
			"Scopes: read (look at jobs, documents, the ledger), enqueue (ask for work), operate (retry, edit, cancel,\n" +
			"run), decrypt (see in plain what jobs keep encrypted). None contains another.\n\n" +
			"With --types it may enqueue background jobs of these types alone. Without --types it may enqueue all types, but cleanup and\n" +
			"db_function only with the scope operate as well. --requests-per-minute and --jobs-per-minute limit its requests and its\n" +
			"enqueued jobs at each server; a tenth of them may come at once. The server answers what exceeds them with status 429.",
		Example: "  daybook tokens create --name shop --scope enqueue --org acme --types webhook,report --requests-per-minute 600 " +
			"--jobs-per-minute 120\n  daybook tokens create --name ops --scope read,operate --all-orgs\n  daybook tokens create --name cron " +
			"--scope operate --all-orgs --run-by-get",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if (n.OrgID == "") != all {
				return cli.Usagef("give either --org or --all-orgs")
			}
			if strings.TrimSpace(n.Name) == "" {
				return cli.Usagef("--name must say what the token is for")
			}
			var err error
			if n.Scopes, err = parseScopes(scopes); err != nil {
				return err
			}
			for _, rate := range []string{"requests-per-minute", "jobs-per-minute"} {
				if v, _ := c.Flags().GetInt(rate); c.Flags().Changed(rate) && (v < 1 || v > tokens.MaxPerMinute) {
					return cli.Usagef("--%s must be from 1 to %d; leave it out for no limit", rate, tokens.MaxPerMinute)
				}
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			token, secret, err := tokens.Create(c.Context(), db.Pool, n)
			if err != nil {
				return err
			}
			actions.About(c.Context(), "", token.ID, nil)
			return a.Emit(CreatedToken{Token: token, Secret: secret}, func(w io.Writer) error {
				a.Say("Token %s for %s. Keep it now: it is not shown again.", token.ID, tokenReach(&token))
				_, err := fmt.Fprintln(w, secret)
				return err
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&n.Name, "name", "", "what the token is for")
	flags.StringSliceVar(&scopes, "scope", nil, "what it allows: read, enqueue, operate, decrypt; several with commas or repeated")
	flags.StringVar(&n.OrgID, "org", "", "the only organization that it reaches")
	flags.BoolVar(&all, "all-orgs", false, "it reaches every organization")
	flags.StringSliceVar(&n.Types, "types", nil,
		"the only types of background jobs that it may enqueue; several with commas or repeated")
	flags.IntVar(&n.RequestsPerMinute, "requests-per-minute", 0,
		"how many requests each server takes from it (default no limit)")
	flags.IntVar(&n.JobsPerMinute, "jobs-per-minute", 0, "how many jobs each server enqueues for it (default no limit)")
	flags.BoolVar(&n.RunByGet, "run-by-get", false,
		"let GET /api/jobs/run work due jobs, for cron services that send GET; wants --scope operate")
	a.CreateFlag(command)
	for _, required := range []string{"name", "scope"} {
		_ = command.MarkFlagRequired(required)
	}
	return command
}

func parseScopes(names []string) ([]tokens.Scope, error) {
	var scopes []tokens.Scope
	for _, name := range names {
		scope := tokens.Scope(strings.TrimSpace(name))
		if !slices.Contains([]tokens.Scope{tokens.Read, tokens.Enqueue, tokens.Operate, tokens.Decrypt}, scope) {
			return nil, cli.Usagef("--scope %q: want read, enqueue, operate or decrypt", name)
		}
		if !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes, nil
}

func tokensListCommand(a *cli.App) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "list",
		Short: "List tokens, the newest first, without their secrets",
		Args:  cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			tokens, err := tokens.List(c.Context(), db.Pool, org)
			if err != nil {
				return err
			}
			return a.Emit(map[string]any{"tokens": tokens}, func(w io.Writer) error { return printTokens(a, w, tokens) })
		}),
	}
	command.Flags().StringVar(&org, "org", "", "only of this organization")
	return command
}

func printTokens(a *cli.App, w io.Writer, tokens []tokens.Token) error {
	t := cli.NewTable("ID", "NAME", "REACHES", "SCOPES", "TYPES", "A MINUTE", "CREATED", "LAST USED", "REVOKED")
	for i := range tokens {
		token := &tokens[i]
		scopes := make([]string, len(token.Scopes))
		for i, s := range token.Scopes {
			scopes[i] = string(s)
		}
		t.Add(token.ID, token.Name, tokenReach(token), strings.Join(scopes, ","), strings.Join(token.Types, ","),
			tokenRates(token), cli.FormatTime(token.CreatedAt), cli.OptionalTime(token.LastUsedAt),
			cli.OptionalTime(token.RevokedAt))
	}
	return a.Print(w, t)
}

// tokenRates says what a token may do in a minute; empty: there is no limit.
func tokenRates(t *tokens.Token) string {
	var rates []string
	if t.RequestsPerMinute > 0 {
		rates = append(rates, phrase.Plural(int64(t.RequestsPerMinute), "request", "requests"))
	}
	if t.JobsPerMinute > 0 {
		rates = append(rates, phrase.Plural(int64(t.JobsPerMinute), "job", "jobs"))
	}
	return strings.Join(rates, ", ")
}

func tokenReach(t *tokens.Token) string {
	if t.OrgID == nil {
		return "all organizations"
	}
	return *t.OrgID
}

func tokensRevokeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a token: it is refused from now on",
		Args:  cobra.ExactArgs(1),
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, args []string) error {
			token, changed, err := tokens.Revoke(c.Context(), db.Pool, args[0])
			if err != nil {
				return err
			}
			actions.About(c.Context(), "", token.ID, map[string]any{"changed": changed})
			if !changed {
				a.Say("Nothing was changed: the token %s (%s) is revoked already.", token.ID, terminal.OneLine(token.Name))
				return a.Emit(token, func(io.Writer) error { return nil })
			}
			return a.Emit(token, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "revoked %s (%s)\n", token.ID, terminal.OneLine(token.Name))
				return err
			})
		}),
	}
}
