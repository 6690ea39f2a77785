package store

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// The statements that the kinds of queue share are written for the kind jobs, and run as they stand when they are pasted into psql and their
// arguments are filled in. What another kind has instead stands beside it in a comment that names the kind:
//
//	/* jobs */q.type/* accounting: ''::text */    this for jobs, that for accounting
//	/* accounting: not_ready_count = 0, */        for accounting only
//
// The names of the table and of the function that wakes its workers are replaced wherever they stand.
var variant = regexp.MustCompile(`(?s)(?:/\* jobs \*/(.*?))?/\* accounting:(.*?)\*/`)

// sql returns a shared statement as it is for the kind.
func (k *Kind) sql(stmt string) string {
	if s, ok := k.statements.Load(stmt); ok {
		return s.(string)
	}
	own := "${1}"
	if k.Name == "accounting" {
		own = "${2}"
	}
	names := strings.NewReplacer("daybook.jobs", k.table, "daybook.wake_job_queue", k.wake)
	s, _ := k.statements.LoadOrStore(stmt, names.Replace(variant.ReplaceAllString(stmt, own)))
	return s.(string)
}

// args are the arguments of a statement by name: @turn in its text is args["turn"]. Those that the text does not name are left out, because
// kinds differ in what they need.
type args map[string]any

var _ pgx.QueryRewriter = args(nil)

// RewriteQuery implements pgx.QueryRewriter.
func (a args) RewriteQuery(_ context.Context, _ *pgx.Conn, stmt string, _ []any) (string, []any, error) {
	return a.bind(stmt)
}

// bound is a statement with numbers in the place of names, which are in the order of their numbers.
type bound struct {
	text  string
	names []string
}

// numbered holds the bound of each statement: to read its text takes longer than to send it.
var numbered sync.Map

var argument = regexp.MustCompile(`@[a-z_]+`)

// bind returns a statement with numbers in the place of names, and its arguments in that order.
func (a args) bind(stmt string) (string, []any, error) {
	known, ok := numbered.Load(stmt)
	if !ok {
		known, _ = numbered.LoadOrStore(stmt, number(stmt))
	}
	b, _ := known.(bound)
	values := make([]any, len(b.names))
	for i, name := range b.names {
		value, given := a[name]
		if !given {
			return "", nil, fmt.Errorf("the statement wants an argument @%s", name)
		}
		values[i] = value
	}
	return b.text, values, nil
}

func number(stmt string) bound {
	var b bound
	numbers := map[string]int{}
	b.text = argument.ReplaceAllStringFunc(stmt, func(arg string) string {
		name := arg[1:]
		if numbers[name] == 0 {
			b.names = append(b.names, name)
			numbers[name] = len(b.names)
		}
		return "$" + strconv.Itoa(numbers[name])
	})
	return b
}

// query runs a statement with named arguments on a Querier, which may know numbered ones only.
func query(ctx context.Context, q Querier, stmt string, a args) (pgx.Rows, error) {
	text, values, err := a.bind(stmt)
	if err != nil {
		return nil, err
	}
	return q.Query(ctx, text, values...)
}

// queryRow is query for one row.
func queryRow(ctx context.Context, q Querier, stmt string, a args) pgx.Row {
	text, values, err := a.bind(stmt)
	if err != nil {
		return failedRow{err}
	}
	return q.QueryRow(ctx, text, values...)
}

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }
