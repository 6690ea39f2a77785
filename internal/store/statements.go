package store

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// The statements that the kinds of queue share are written for the kind jobs, and run as they stand
// when they are pasted into psql and their arguments are filled in. What another kind has instead
// stands beside it in a comment that names the kind:
//
//	/* jobs */q.type/* accounting: ''::text */    this for jobs, that for accounting
//	/* accounting: not_ready_count = 0, */        for accounting only
//	/* queues: AND u.paused_at IS NULL */         where jobs of named queues are asked for; the others do not pay for it
//
// The names of the table and of the function that wakes its workers are replaced wherever they
// stand. Each text that comes of it is in testdata/statements, for review, psql and EXPLAIN
// (GENERIC_PLAN).
var variant = regexp.MustCompile(`(?s)(?:/\* jobs \*/(.*?))?/\* accounting:(.*?)\*/`)

var ofQueues = regexp.MustCompile(`(?s)/\* queues:(.*?)\*/`)

// variantOf names a text of a shared statement: with queues it is the one for jobs of named queues.
type variantOf struct {
	stmt   string
	queues bool
}

// sql returns a shared statement as it is for the kind.
func (k *Kind) sql(stmt string) string { return k.text(variantOf{stmt, false}) }

// sqlOfQueues returns a shared statement as it is for the kind where jobs of named queues are asked
// for.
func (k *Kind) sqlOfQueues(stmt string) string { return k.text(variantOf{stmt, true}) }

func (k *Kind) text(v variantOf) string {
	if s, ok := k.statements.Load(v); ok {
		return s.(string)
	}
	forQueues, forKind := "", "${1}"
	if v.queues {
		forQueues = "${1}"
	}
	if k.Name == "accounting" {
		forKind = "${2}"
	}
	names := strings.NewReplacer("daybook.jobs", k.table, "daybook.wake_job_queue", k.wake)
	s, _ := k.statements.LoadOrStore(v,
		names.Replace(variant.ReplaceAllString(ofQueues.ReplaceAllString(v.stmt, forQueues), forKind)))
	return s.(string)
}

// Args are the arguments of a statement by name: @turn in its text is args["turn"]. Those that the
// text does not name are left out, because kinds differ in what they need.
type Args map[string]any

var _ pgx.QueryRewriter = Args(nil)

// RewriteQuery implements pgx.QueryRewriter.
func (a Args) RewriteQuery(_ context.Context, conn *pgx.Conn, stmt string, _ []any) (string, []any, error) {
	text, values, err := a.bind(stmt)
	if err == nil {
		makeRoom(conn, values)
	}
	return text, values, err
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
func (a Args) bind(stmt string) (string, []any, error) {
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

// query runs a statement on a Querier. Its arguments are in the order of their numbers, or one
// Args: a Querier may know numbered ones only.
func query(ctx context.Context, q Querier, stmt string, values ...any) (pgx.Rows, error) {
	stmt, values, err := numberedArgs(stmt, values)
	if err != nil {
		return nil, err
	}
	return q.Query(ctx, stmt, values...)
}

// queryRow is query for one row.
func queryRow(ctx context.Context, q Querier, stmt string, values ...any) pgx.Row {
	stmt, values, err := numberedArgs(stmt, values)
	if err != nil {
		return failedRow{err}
	}
	return q.QueryRow(ctx, stmt, values...)
}

// value returns the one value that a statement answers with, which runs as query does.
func value[T any](ctx context.Context, q Querier, doing, stmt string, values ...any) (v T, err error) {
	err = queryRow(ctx, q, stmt, values...).Scan(&v)
	return v, Wrap(doing, err)
}

func numberedArgs(stmt string, values []any) (string, []any, error) {
	if len(values) == 1 {
		if a, named := values[0].(Args); named {
			return a.bind(stmt)
		}
	}
	return stmt, values, nil
}

// Collect runs a statement, as query does, and returns what scan makes of each row.
func Collect[T any](ctx context.Context, q Querier, scan pgx.RowToFunc[T], stmt string, values ...any) ([]T, error) {
	rows, err := query(ctx, q, stmt, values...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// Each runs a statement, as query does, scans each row into fields, and calls f after that.
func Each(ctx context.Context, q Querier, fields []any, f func() error, stmt string, values ...any) error {
	rows, err := query(ctx, q, stmt, values...)
	if err == nil {
		_, err = pgx.ForEachRow(rows, fields, f)
	}
	return err
}

// Pairs runs a statement of two columns, as query does, and returns the second by the first.
func Pairs[K comparable, V any](ctx context.Context, q Querier, stmt string, values ...any) (map[K]V, error) {
	pairs := map[K]V{}
	var k K
	var v V
	err := Each(ctx, q, []any{&k, &v}, func() error {
		pairs[k] = v
		return nil
	}, stmt, values...)
	return pairs, err
}

// eachRow scans each row into fields, and calls f after that.
func eachRow(fields []any, f func()) pgx.RowToFunc[struct{}] {
	return func(row pgx.CollectableRow) (struct{}, error) {
		err := row.Scan(fields...)
		if err == nil {
			f()
		}
		return struct{}{}, err
	}
}

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

// Texts converts the values of a string type to plain strings.
func Texts[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

// timeOrNever scans a timestamp that may be infinite, which leaves the time as it is: one row that
// can never be due must not fail a statement that is about all of them.
type timeOrNever struct{ time *time.Time }

// ScanTimestamptz implements pgx's interface.
func (t timeOrNever) ScanTimestamptz(v pgtype.Timestamptz) error {
	if v.Valid && v.InfinityModifier == pgtype.Finite {
		*t.time = v.Time
	}
	return nil
}

// IsNil reports whether a handle is nil, or an interface that holds a nil pointer.
func IsNil(handle any) bool {
	v := reflect.ValueOf(handle)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
