// Package bom reads text as programs save it: as UTF-8, with a byte order mark or without one.
// UTF-16, as which Excel and PowerShell save some files, is told apart, so that the error can say
// what to do.
package bom

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Encoding is what the first bytes of a text say about the others.
type Encoding int

const (
	// None: nothing is said, as in most files of UTF-8.
	None Encoding = iota
	// UTF8: the text begins with the byte order mark of UTF-8.
	UTF8
	// UTF16: the text begins with a byte order mark of UTF-16, or each second byte is zero, which is
	// text in no other encoding.
	UTF16
)

var utf8Mark = []byte("\xef\xbb\xbf")

// ErrUTF16 refuses a text in UTF-16.
var ErrUTF16 = errors.New("the text is written in UTF-16, and UTF-8 is wanted: save it as UTF-8")

// Peeked is how many bytes Detect wants, if there are so many.
const Peeked = 4

// Detect returns what the first bytes of a text say.
func Detect(first []byte) Encoding {
	switch {
	case bytes.HasPrefix(first, utf8Mark):
		return UTF8
	case bytes.HasPrefix(first, []byte("\xff\xfe")), bytes.HasPrefix(first, []byte("\xfe\xff")):
		return UTF16
	case len(first) >= Peeked && first[0] != 0 && first[1] == 0 && first[2] != 0 && first[3] == 0,
		len(first) >= Peeked && first[0] == 0 && first[1] != 0 && first[2] == 0 && first[3] != 0:
		return UTF16
	}
	return None
}

// Trim returns a text in UTF-8 without its byte order mark. The error is ErrUTF16.
func Trim(text []byte) ([]byte, error) {
	if Detect(text) == UTF16 {
		return nil, ErrUTF16
	}
	return bytes.TrimPrefix(text, utf8Mark), nil
}

// Reader is Trim for a text that is read bit by bit. An error of r is returned by the reads that
// follow.
func Reader(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(r)
	first, _ := buffered.Peek(Peeked)
	switch Detect(first) {
	case UTF16:
		return nil, ErrUTF16
	case UTF8:
		_, _ = buffered.Discard(len(utf8Mark))
	default:
	}
	return buffered, nil
}
