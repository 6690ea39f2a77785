package start

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/direct"
	"github.com/daybook-dev/daybook/internal/store/hosts"
	"github.com/daybook-dev/daybook/migrations"
)

const dumpHeader = "-- The schema that the migrations make, for review. Written by `daybook migrate dump` (make schema); do not edit.\n\n"

func migrateDumpCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "dump",
		Short: "Print the schema as SQL",
		Long: "Prints the schemas daybook, queues and internal as SQL, without what depends on the server's version or the moment.\n\n" +
			"Without a database it starts a private one, migrates that, prints its schema and removes it.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dump, err := dumpSchema(c.Context(), a)
			if err != nil {
				return err
			}
			_, err = a.Stdout.Write(dump)
			return err
		},
	}
}

func dumpSchema(ctx context.Context, a *cli.App) ([]byte, error) {
	if a.DatabaseURL != "" {
		if err := a.CheckDatabaseURL(); err != nil {
			return nil, err
		}
		program, err := exec.LookPath("pg_dump")
		if err != nil {
			return nil, errors.New("pg_dump is not on the PATH: install PostgreSQL's client programs, " +
				"or leave the database out to dump the schema of a private one")
		}
		server, err := requireSession(ctx, a.SessionURL())
		if err != nil {
			return nil, err
		}
		return dump(ctx, program, a.SessionURL(), server)
	}
	return dumpPrivate(ctx, a)
}

// requireSession refuses an address through a pooler for pg_dump, which changes settings of its
// session. It returns what it connected by: the first of the servers of the address is one that
// answers.
func requireSession(ctx context.Context, address string) (_ *pgx.ConnConfig, err error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, cli.ErrBadDatabaseURL
	}
	conn, err := hosts.Connect(ctx, config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	return conn.Config(), direct.Require(ctx, conn)
}

// dumpPrivate dumps the schema that the migrations make in a database that is made and thrown away
// for it.
func dumpPrivate(ctx context.Context, a *cli.App) (_ []byte, err error) {
	stack, err := devstack.Start(ctx, devstack.Options{
		NoTemporal: true, FastAndUnsafe: true, Private: true, Log: a.Log,
		Progress: func(line string) { a.Log.Debug(line) },
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cli.StopStack(ctx, stack)) }()
	if err := migrations.Up(ctx, stack.DatabaseURL); err != nil {
		return nil, err
	}
	dir, err := serverPrograms(ctx, stack.AdminURL)
	if err != nil {
		return nil, err
	}
	server, err := pgx.ParseConfig(stack.DatabaseURL)
	if err != nil {
		return nil, err
	}
	// The server's own, so that the versions agree.
	return dump(ctx, filepath.Join(dir, "pg_dump"), stack.DatabaseURL, server)
}

func serverPrograms(ctx context.Context, adminURL string) (dir string, err error) {
	conn, err := pgx.Connect(ctx, adminURL)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	return store.ServerPrograms(ctx, conn)
}

func dump(ctx context.Context, program, databaseURL string, server *pgx.ConnConfig) ([]byte, error) {
	command := exec.CommandContext(ctx, program, "--schema-only", "--schema=daybook", "--schema=queues",
		"--schema=internal", "--no-owner", "--no-privileges")
	// Constants of time are written in the session's time zone.
	command.Env = append(append(os.Environ(), "PGTZ=UTC"), libpqEnvironment(databaseURL, server)...)
	var output, problems bytes.Buffer
	command.Stdout, command.Stderr = &output, &problems
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(problems.String()))
	}
	return normaliseDump(output.Bytes()), nil
}

// libpqEnvironment names the database to PostgreSQL's own programs by variables, because every user
// of the machine can read the arguments of a program.
func libpqEnvironment(databaseURL string, server *pgx.ConnConfig) []string {
	environment := []string{
		"PGHOST=" + server.Host, fmt.Sprintf("PGPORT=%d", server.Port), "PGUSER=" + server.User,
		"PGPASSWORD=" + server.Password,
		"PGDATABASE=" + server.Database,
	}
	given := parameters(databaseURL)
	for parameter, variable := range map[string]string{
		"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY",
		"sslnegotiation": "PGSSLNEGOTIATION", "ssl_min_protocol_version": "PGSSLMINPROTOCOLVERSION",
		"channel_binding": "PGCHANNELBINDING", "require_auth": "PGREQUIREAUTH",
	} {
		if value := given[parameter]; value != "" {
			environment = append(environment, variable+"="+value)
		}
	}
	return environment
}

// keywordValue is one parameter of an address of keywords and values: host=db sslmode='verify-full'.
var keywordValue = regexp.MustCompile(`(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s\\]|\\.)*)`)

// parameters are those of an address, which may be a URL, or keywords and values as libpq has them.
func parameters(address string) map[string]string {
	all := map[string]string{}
	if strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://") {
		if u, err := url.Parse(address); err == nil {
			for name, values := range u.Query() {
				all[name] = values[0]
			}
		}
		return all
	}
	for _, m := range keywordValue.FindAllStringSubmatch(address, -1) {
		value := m[2]
		if strings.HasPrefix(value, "'") {
			value = strings.TrimSuffix(value[1:], "'")
		}
		all[m[1]] = escaped.ReplaceAllString(value, "$1")
	}
	return all
}

var escaped = regexp.MustCompile(`(?s)\\(.)`)

// normaliseDump leaves out what differs between versions of pg_dump and between runs: the session's
// settings, the versions, and the key that newer versions guard a dump with.
func normaliseDump(dump []byte) []byte {
	var out strings.Builder
	out.WriteString(dumpHeader)
	blank := true
	quoted := ""
	for line := range strings.Lines(string(dump)) {
		line = strings.TrimRight(line, " \r\n")
		if quoted == "" && leftOut(line) {
			continue
		}
		// A function's body stands between dollar quotes and is kept as it is.
		quoted = dollarQuote(line, quoted)
		if line == "" && blank && quoted == "" {
			continue
		}
		blank = line == ""
		out.WriteString(line + "\n")
	}
	return []byte(strings.TrimRight(out.String(), "\n") + "\n")
}

func leftOut(line string) bool {
	for _, prefix := range []string{
		"SET ", "SELECT pg_catalog.set_config(", `\restrict`, `\unrestrict`, "-- Dumped ", "-- PostgreSQL database dump",
	} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return line == "--"
}

// dollarQuote returns the dollar quote that is open after the line.
func dollarQuote(line, open string) string {
	for {
		if open != "" {
			_, rest, found := strings.Cut(line, open)
			if !found {
				return open
			}
			line, open = rest, ""
			continue
		}
		_, rest, found := strings.Cut(line, "$")
		if !found {
			return ""
		}
		tag, after, found := strings.Cut(rest, "$")
		if !found {
			return ""
		}
		if strings.ContainsFunc(tag, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			line = rest // a dollar of its own, as in a pattern
			continue
		}
		line, open = after, "$"+tag+"$"
	}
}
