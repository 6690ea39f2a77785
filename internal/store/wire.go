package store

import (
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// pgx writes the arguments of a statement to a buffer, and that to the buffer of what is sent. It
// drops both after each long message, and has them grow by a quarter at a time: five times as much
// garbage as is sent. That was a third of all that a worker makes. makeRoom has both grow once.

// roomFrom is the least number of bytes for which makeRoom pays.
const roomFrom = 4 << 10

// makeRoom makes room in the buffers of a connection for the columns among the arguments of the
// statement that is sent next.
func makeRoom(conn *pgx.Conn, values []any) {
	n := 0
	for _, v := range values {
		n += wireSize(v)
	}
	if n < roomFrom {
		return
	}
	n += n/8 + 32*len(values) // heads of arrays, quotation marks, and the other arguments
	conn.PgConn().Frontend().Send(room(n))
	const known = "daybook.roomy"
	if data := conn.PgConn().CustomData(); data[known] == nil {
		data[known] = true
		m := conn.TypeMap()
		m.TryWrapEncodePlanFuncs = slices.Insert(m.TryWrapEncodePlanFuncs, 0, planRoomy)
	}
	for i, v := range values {
		switch column := v.(type) {
		case []string:
			values[i] = roomy[[]string]{column, n}
		case []int64:
			values[i] = roomy[[]int64]{column, n}
		default:
			continue
		}
		return
	}
}

// wireSize is about how many bytes a column takes on the wire, where the length of each element
// stands before it. It is 0 for other arguments.
func wireSize(v any) (n int) {
	const length = 4
	switch column := v.(type) {
	case []string:
		n = length * len(column)
		for _, s := range column {
			n += len(s)
		}
	case [][]byte:
		n = length * len(column)
		for _, b := range column {
			n += len(b)
		}
	case []int64:
		n = len(column) * (length + 8)
	case []*int64:
		n = len(column) * (length + 8)
	case []int32:
		n = len(column) * (length + 4)
	case []*int32:
		n = len(column) * (length + 4)
	case []time.Time:
		n = len(column) * (length + 8)
	}
	return n
}

// room is a message to PostgreSQL that writes nothing: it makes room for as many bytes in the
// buffer of what is sent.
type room int

// Frontend implements pgproto3.FrontendMessage.
func (room) Frontend() {}

// Encode implements pgproto3.Message.
func (r room) Encode(buffer []byte) ([]byte, error) { return slices.Grow(buffer, int(r)), nil }

// Decode implements pgproto3.Message.
func (room) Decode([]byte) error { return nil }

// roomy is a column that makes room for as many bytes in the buffer of arguments before it is
// written there. There is a type of it for each type of column, since pgx keeps its plans by type.
type roomy[C any] struct {
	column C
	bytes  int
}

func (r roomy[C]) unwrap() (column any, bytes int) { return r.column, r.bytes }

// wrapped is a roomy column of any type.
type wrapped interface {
	unwrap() (column any, bytes int)
}

// planRoomy is a pgtype.TryWrapEncodePlanFunc.
func planRoomy(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
	if r, ok := value.(wrapped); ok {
		column, _ := r.unwrap()
		return &roomyPlan{}, column, true
	}
	return nil, nil, false
}

type roomyPlan struct{ next pgtype.EncodePlan }

// SetNext implements pgtype.WrappedEncodePlanNextSetter.
func (p *roomyPlan) SetNext(next pgtype.EncodePlan) { p.next = next }

// Encode implements pgtype.EncodePlan.
func (p *roomyPlan) Encode(value any, buffer []byte) ([]byte, error) {
	column, bytes := value.(wrapped).unwrap()
	return p.next.Encode(column, slices.Grow(buffer, bytes))
}
