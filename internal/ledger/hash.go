package ledger

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

// contentHash is the hash of what the rules made of a document, before periods move its date. Two
// versions with the same hash are the same posting.
func contentHash(m *posting.Impact) []byte {
	b := make([]byte, 0, 1024) // on the stack: most impacts need no more
	b = appendText(b, m.RuleID)
	b = appendText(b, m.DocumentDate.String())
	b = appendText(b, m.PostingDate.String())
	b = appendNumber(b, int64(len(m.Entries)))
	for i := range m.Entries {
		e := &m.Entries[i]
		b = appendText(b, e.Account)
		b = appendText(b, string(e.Side))
		b = appendNumber(b, e.Amount)
		b = appendText(b, e.Currency)
		b = appendText(b, e.RuleLineID)
		b = appendNumber(b, int64(e.DocumentLine))
		if len(e.Dimensions) > 0 {
			b = appendDimensions(b, e.Dimensions)
		}
	}
	sum := sha256.Sum256(b)
	return sum[:]
}

// appendDimensions appends dimensions in the order of their keys. They begin with a number that no
// text's length is, so that what follows an entry without any is never taken for them.
func appendDimensions(b []byte, dimensions models.Dimensions) []byte {
	b = appendNumber(b, -1)
	b = appendNumber(b, int64(len(dimensions)))
	for _, key := range dimensions.Keys() {
		b = appendText(b, key)
		b = appendText(b, dimensions[key])
	}
	return b
}

// appendText appends a string after its length, so that no two lists of strings append the same
// bytes.
func appendText(b []byte, s string) []byte {
	return append(appendNumber(b, int64(len(s))), s...)
}

func appendNumber(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(n))
}
