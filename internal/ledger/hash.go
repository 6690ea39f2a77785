package ledger

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/daybook-dev/daybook/accounting/posting"
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
	}
	sum := sha256.Sum256(b)
	return sum[:]
}

// appendText appends a string after its length, so that no two lists of strings append the same
// bytes.
func appendText(b []byte, s string) []byte {
	return append(appendNumber(b, int64(len(s))), s...)
}

func appendNumber(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(n))
}
