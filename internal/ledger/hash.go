package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/daybook-dev/daybook/posting"
)

// contentHash is the hash of what the rules made of a document, before periods move its date. Two versions with the same
// hash are the same posting.
func contentHash(m *posting.Impact) []byte {
	h := sha256.New()
	text(h, m.RuleID)
	text(h, m.DocumentDate.String())
	text(h, m.PostingDate.String())
	number(h, int64(len(m.Entries)))
	for i := range m.Entries {
		e := &m.Entries[i]
		text(h, e.Account)
		text(h, string(e.Side))
		number(h, e.Amount)
		text(h, e.Currency)
		text(h, e.RuleLineID)
		number(h, int64(e.DocumentLine))
	}
	return h.Sum(nil)
}

// text writes a string after its length, so that no two lists of strings write the same bytes.
func text(h hash.Hash, s string) {
	number(h, int64(len(s)))
	h.Write([]byte(s))
}

func number(h hash.Hash, n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}
