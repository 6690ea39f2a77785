package importer

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
)

// What a PDF is made of (ISO 32000-1, 7.3): nil, bool, float64, string, pdfName, pdfArray, pdfDict,
// pdfRef, pdfStream, and pdfWord for what is none of them.
type (
	pdfName  string
	pdfWord  string
	pdfArray []any
	pdfDict  map[pdfName]any
	pdfRef   int
	// pdfStream is what a dictionary says of the bytes at a place of the file.
	pdfStream struct {
		head pdfDict
		at   int
	}
)

// maxPDFDepth bounds arrays and dictionaries within each other, and how far references are followed.
const maxPDFDepth = 100

// pdfLexer reads objects from a text. What it cannot read is an error that it keeps.
type pdfLexer struct {
	text []byte
	at   int
	bad  bool
}

func pdfSpace(c byte) bool {
	return c == 0 || c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == ' '
}

func pdfDelimiter(c byte) bool { return strings.IndexByte("()<>[]{}/%", c) >= 0 }

// skip goes to the next byte that is no space and in no comment.
func (l *pdfLexer) skip() {
	for ; l.at < len(l.text); l.at++ {
		switch c := l.text[l.at]; {
		case c == '%':
			for l.at+1 < len(l.text) && l.text[l.at+1] != '\n' && l.text[l.at+1] != '\r' {
				l.at++
			}
		case !pdfSpace(c):
			return
		}
	}
}

func (l *pdfLexer) has(prefix string) bool { return bytes.HasPrefix(l.text[l.at:], []byte(prefix)) }

// object reads an object; at the end of the text, and where there is none, it is an empty word.
func (l *pdfLexer) object(depth int) any {
	l.skip()
	switch {
	case l.at >= len(l.text) || depth > maxPDFDepth:
		l.bad = true
		return pdfWord("")
	case l.has("<<"):
		l.at += 2
		return l.dict(depth)
	case l.has("<"):
		return l.hex()
	case l.has("("):
		return l.literal()
	case l.has("["):
		l.at++
		array := pdfArray{}
		for {
			item := l.object(depth + 1)
			if item == pdfWord("]") || l.bad {
				return array
			}
			array = append(array, item)
		}
	case l.has("/"):
		l.at++
		return pdfName(unhexName(l.regular()))
	case pdfDelimiter(l.text[l.at]):
		n := 1
		if l.has(">>") {
			n = 2
		}
		l.at += n
		return pdfWord(l.text[l.at-n : l.at])
	}
	return l.word()
}

func (l *pdfLexer) dict(depth int) any {
	dict := pdfDict{}
	for !l.bad {
		key := l.object(depth + 1)
		if key == pdfWord(">>") {
			break
		}
		name, ok := key.(pdfName)
		if !ok {
			l.bad = true
			break
		}
		dict[name] = l.object(depth + 1)
	}
	return dict
}

// regular reads up to the next space or delimiter.
func (l *pdfLexer) regular() string {
	start := l.at
	for l.at < len(l.text) && !pdfSpace(l.text[l.at]) && !pdfDelimiter(l.text[l.at]) {
		l.at++
	}
	return string(l.text[start:l.at])
}

// word reads a number, a reference (17 0 R), a constant or another word.
func (l *pdfLexer) word() any {
	switch text := l.regular(); text {
	case "null":
		return nil
	case "true", "false":
		return text == "true"
	default:
		number, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return pdfWord(text)
		}
		if ref, ok := l.reference(text); ok {
			return ref
		}
		return number
	}
}

// reference reads the rest of a reference whose number was read.
func (l *pdfLexer) reference(number string) (pdfRef, bool) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return 0, false
	}
	start := l.at
	l.skip()
	if generation := l.regular(); generation != "" && allDigits(generation) {
		l.skip()
		if l.regular() == "R" {
			return pdfRef(n), true
		}
	}
	l.at = start
	return 0, false
}

func unhexName(text string) string {
	before, after, ok := strings.Cut(text, "#")
	if !ok || len(after) < 2 {
		return text
	}
	c, err := strconv.ParseUint(after[:2], 16, 8)
	if err != nil {
		return text
	}
	return before + string([]byte{byte(c)}) + unhexName(after[2:])
}

func (l *pdfLexer) hex() any {
	end := bytes.IndexByte(l.text[l.at:], '>')
	if end < 0 {
		l.bad = true
		return ""
	}
	digits := withoutSpaces(string(l.text[l.at+1 : l.at+end]))
	l.at += end + 1
	if len(digits)%2 == 1 {
		digits += "0"
	}
	out := make([]byte, 0, len(digits)/2)
	for i := 0; i < len(digits); i += 2 {
		c, err := strconv.ParseUint(digits[i:i+2], 16, 8)
		l.bad = l.bad || err != nil
		out = append(out, byte(c))
	}
	return string(out)
}

// literal reads a text in brackets, which may have pairs of them in it.
func (l *pdfLexer) literal() any {
	var out []byte
	for depth := 0; l.at < len(l.text); l.at++ {
		c := l.text[l.at]
		switch {
		case c == '\\' && l.at+1 < len(l.text):
			l.at++
			out = l.escaped(out)
			continue
		case c == '(':
			if depth++; depth == 1 {
				continue
			}
		case c == ')':
			if depth--; depth == 0 {
				l.at++
				return string(out)
			}
		}
		out = append(out, c)
	}
	l.bad = true
	return ""
}

// escaped adds what the byte behind a backslash stands for.
func (l *pdfLexer) escaped(out []byte) []byte {
	c := l.text[l.at]
	if i := strings.IndexByte("nrtbf", c); i >= 0 {
		return append(out, "\n\r\t\b\f"[i])
	}
	switch {
	case c == '\n':
		return out
	case c == '\r':
		if l.at+1 < len(l.text) && l.text[l.at+1] == '\n' {
			l.at++
		}
		return out
	case c < '0' || c > '7':
		return append(out, c)
	}
	n := 0
	for i := 0; i < 3 && l.at < len(l.text) && l.text[l.at] >= '0' && l.text[l.at] <= '7'; i++ {
		n = n*8 + int(l.text[l.at]-'0')
		l.at++
	}
	l.at--
	return append(out, byte(n))
}

// pdfText is a text string: UTF-16 or UTF-8 with a mark, else one byte a letter.
func pdfText(text string) string {
	switch {
	case strings.HasPrefix(text, "\xfe\xff"):
		var units []uint16
		for i := 2; i+1 < len(text); i += 2 {
			units = append(units, uint16(text[i])<<8|uint16(text[i+1]))
		}
		return string(utf16.Decode(units))
	case strings.HasPrefix(text, "\xef\xbb\xbf"):
		return text[3:]
	}
	letters := make([]rune, len(text))
	for i := range len(text) {
		letters[i] = rune(text[i])
	}
	return string(letters)
}
