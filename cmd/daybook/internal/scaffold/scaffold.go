package scaffold

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/daybook-dev/daybook/failure"
)

// ErrOptions means that no SQL can be written of the options. What is wrong is in the error's text.
var ErrOptions = failure.New(failure.Usage, "the options are wrong")

// Options say what is written.
type Options struct {
	// Name is the process's name, from which those of tables and functions are made: NAME_task,
	// kickoff_NAME, NAME_supervisor …
	Name string
	// Schema is where they are made; default app.
	Schema string
	// Channel is the type of the tasks that are attempts; default db_function. Of email, sms and
	// file_delete the provider's payload is an example; of any other type, for which the worker needs
	// a processor, it is the id.
	Channel string
	// MaxAttempts is how often is tried; default 5, at most 100.
	MaxAttempts int
	// References is what the process is about, as schema.table.column; the column is a bigint. Empty:
	// a bigint of the name NAME_id.
	References string
	// Prefix begins the migration's file name, such as 00007_.
	Prefix string
}

// File is a file to be written.
type File struct {
	Name string
	Text []byte
}

//go:embed *.tmpl
var files embed.FS

var templates = template.Must(template.ParseFS(files, "*.tmpl"))

// Files returns the migration and its tests.
func Files(o Options) ([]File, error) {
	o.Schema, o.Channel, o.MaxAttempts = cmp.Or(o.Schema, "app"), cmp.Or(o.Channel, function), cmp.Or(o.MaxAttempts, 5)
	if err := o.check(); err != nil {
		return nil, err
	}
	data := struct {
		Options
		// Key is the column that says what the process is about; RefTable and RefColumn are what it
		// references.
		Key, RefTable, RefColumn string
		// Function: attempts are functions of the database, and no provider is called.
		Function bool
		// Provider is the arguments of jsonb_build_object that make the provider's payload.
		Provider string
		TestFile string
	}{Options: o, Key: o.Name + "_id", Function: o.Channel == function, TestFile: o.Prefix + o.Name + "_test.sql"}
	if o.References != "" {
		at := strings.LastIndexByte(o.References, '.')
		data.RefTable, data.RefColumn = o.References[:at], o.References[at+1:]
		data.Key, data.References = data.RefColumn, data.RefTable+" ("+data.RefColumn+")"
	}
	data.Provider = provider(o, data.Key)
	out := []File{{Name: o.Prefix + o.Name + ".sql"}, {Name: data.TestFile}}
	for i, name := range []string{"migration.sql.tmpl", "test.sql.tmpl"} {
		var b bytes.Buffer
		if err := templates.ExecuteTemplate(&b, name, data); err != nil {
			return nil, err
		}
		out[i].Text = b.Bytes()
	}
	return out, nil
}

// function is the channel whose attempts are functions of the database.
const function = "db_function"

// provider is an example of what a provider is asked for. Its addresses are those that are reserved
// for examples.
func provider(o Options, key string) string {
	switch o.Channel {
	case "email":
		return fmt.Sprintf("\n        'to_address', 'ada@example.com', 'subject', '%s', 'text', format('%s %%s', _%s)",
			o.Name, key, key)
	case "sms":
		return fmt.Sprintf("\n        'to_number', '+12025550123', 'body', format('%s %%s', _%s)", key, key)
	case "file_delete":
		return fmt.Sprintf("\n        'bucket', 'example', 'object_key', format('%s/%%s', _%s)", o.Name, key)
	}
	return fmt.Sprintf("'%s', _%s", key, key)
}

var (
	// names leave room for what is put around them: an identifier of PostgreSQL has 63 bytes.
	processName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	identifier  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
	filePrefix  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
)

// check says what is wrong with the options, and what would not be.
func (o Options) check() error {
	column := o.References[strings.LastIndexByte(o.References, '.')+1:]
	switch parts := strings.Split(o.References, "."); {
	case !processName.MatchString(o.Name):
		return wrong("the name %q: want a small letter and then small letters, digits or _, 40 at most, such as "+
			"send_reminder", o.Name)
	case !identifier.MatchString(o.Schema):
		return wrong("the schema %q: want a small letter and then small letters, digits or _, 63 at most", o.Schema)
	case slices.Contains([]string{"daybook", "queues", "internal", "information_schema"}, o.Schema) ||
		strings.HasPrefix(o.Schema, "pg_"):
		return wrong("the schema %s is not the application's own: name another one", o.Schema)
	case !identifier.MatchString(o.Channel):
		return wrong("the channel %q: want db_function, email, sms, file_delete or a type of your own, in small letters, "+
			"digits and _", o.Channel)
	case o.MaxAttempts < 1 || o.MaxAttempts > 100:
		return wrong("%d attempts: want 1 to 100", o.MaxAttempts)
	case o.Prefix != "" && !filePrefix.MatchString(o.Prefix):
		return wrong("the prefix %q: want letters, digits, _, . and -, such as 00007_", o.Prefix)
	case o.References == "":
		return reserved(o.Schema)
	case len(parts) != 3 || slices.ContainsFunc(parts, func(p string) bool { return !identifier.MatchString(p) }):
		return wrong("the reference %q: want schema.table.column, in small letters, digits and _, such as "+
			"shop.orders.order_id", o.References)
	case slices.Contains([]string{o.Name + "_task_id", o.Name + "_attempt_id", "created_at", "payload", "scheduled_at"},
		column):
		return wrong("the column %s of the reference: the process has something else of that name", column)
	default:
		return reserved(o.Schema, parts...)
	}
}

// reserved refuses the words that PostgreSQL would read as its own. The process's name is always a
// part of a longer one.
func reserved(schema string, names ...string) error {
	for _, name := range append([]string{schema}, names...) {
		if slices.Contains(keywords, name) {
			return wrong("%s is a word of SQL, which would have to be quoted everywhere: choose another name", name)
		}
	}
	return nil
}

// keywords are the reserved words of PostgreSQL, and those that name only functions and types.
var keywords = strings.Fields(`all analyse analyze and any array as asc asymmetric authorization between binary both case cast check collate collation column
concurrently constraint create cross current_catalog current_date current_role current_schema current_time current_timestamp current_user default deferrable
desc distinct do else end except false fetch for foreign freeze from full grant group having ilike in initially inner intersect into is isnull join lateral
leading left like limit localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references returning right
select session_user similar some symmetric system_user table tablesample then to trailing true union unique user using variadic verbose when where window with`)

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrOptions, fmt.Sprintf(format, args...))
}
