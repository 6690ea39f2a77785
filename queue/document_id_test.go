package queue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/queue"
)

// number, text and uuid are types as those of an application.
type (
	number int64
	text   string
	uuid   [16]byte
)

var aUUID = uuid{0x0b, 0x7e, 0x11, 0x52, 0x43, 0xd9, 0x4f, 0x0a, 0x9c, 0x1d, 0x5a, 0xe0, 0x34, 0xfe, 0xdc, 0xba}

func TestDocumentIDsAreParsedBack(t *testing.T) {
	t.Parallel()
	namespace, n, err := queue.ParseDocumentID[number](queue.DocumentID("invoice", number(-42)))
	require.NoError(t, err)
	assert.Equal(t, "invoice", namespace)
	assert.Equal(t, number(-42), n)
	_, s, err := queue.ParseDocumentID[text](queue.DocumentID("order", text("2026:7")))
	require.NoError(t, err)
	assert.Equal(t, text("2026:7"), s)
	_, u, err := queue.ParseDocumentID[uuid](queue.DocumentID("payment", aUUID))
	require.NoError(t, err)
	assert.Equal(t, aUUID, u)
}

// TestARowHasOneDocumentID: another spelling of a row's key would be another document, and would be
// posted beside the row's own.
func TestARowHasOneDocumentID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"", "42", ":42", "invoice:", "invoice:042", "invoice:+42", "invoice:-0", "invoice: 42",
		"invoice:42 ", "invoice:4_2", "invoice:9223372036854775808", "invoice:x",
	} {
		_, _, err := queue.ParseDocumentID[int64](id)
		assert.ErrorIs(t, err, queue.ErrDocumentID, "%q", id)
	}
	canonical := queue.DocumentID("payment", aUUID)
	for _, id := range []string{
		strings.ToUpper(canonical), strings.ReplaceAll(canonical, "-", ""), canonical + "-",
		canonical[:len(canonical)-2], "payment:{" + canonical[8:] + "}",
	} {
		_, _, err := queue.ParseDocumentID[uuid](id)
		assert.ErrorIs(t, err, queue.ErrDocumentID, "%q", id)
	}
	_, _, err := queue.ParseDocumentID[int32]("invoice:2147483648")
	assert.ErrorIs(t, err, queue.ErrDocumentID)
}

func TestANamespaceHasNoColon(t *testing.T) {
	t.Parallel()
	for _, namespace := range []string{"", "a:b"} {
		assert.Panics(t, func() { queue.DocumentID(namespace, 1) }, "%q", namespace)
	}
}

// Invoices have whole numbers, and payments UUIDs: no invoice has the document id of a payment.
func ExampleDocumentID() {
	fmt.Println(queue.DocumentID("invoice", 42))
	fmt.Println(queue.DocumentID("payment", aUUID))
	// Output:
	// invoice:42
	// payment:0b7e1152-43d9-4f0a-9c1d-5ae034fedcba
}

func ExampleParseDocumentID() {
	namespace, id, err := queue.ParseDocumentID[int64]("invoice:42")
	fmt.Println(namespace, id, err)
	_, _, err = queue.ParseDocumentID[int64]("invoice:042")
	fmt.Println(err)
	// Output:
	// invoice 42 <nil>
	// this is no document id of a row of a table: "invoice:042" is not what DocumentID returns for a key of type int64
}
