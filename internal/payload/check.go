package payload

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/daybook-dev/daybook/models"
)

// Check refuses what the database would refuse: a payload that is no JSON object, has more than
// models.MaxPayloadBytes as PostgreSQL writes it, is nested deeper than models.MaxPayloadLevels,
// has more than models.MaxPayloadKeys, or holds what jsonb cannot (the character U+0000, half a
// surrogate pair, a number with more than 16383 digits after the point).
func Check(raw []byte) error {
	s, err := measure(raw)
	switch {
	case err != nil:
		return err
	case s.levels > models.MaxPayloadLevels:
		return invalid("", fmt.Sprintf("it is nested deeper than %d levels", models.MaxPayloadLevels))
	case s.keys > models.MaxPayloadKeys:
		return invalid("", fmt.Sprintf("it has %d keys and may have %d", s.keys, models.MaxPayloadKeys))
	}
	return nil
}

// CheckAnswer is Check for the answer of a callback.
func CheckAnswer(raw []byte) error {
	err := Check(raw)
	if wrong, ok := errors.AsType[*Error](err); ok {
		wrong.Answer = true
	}
	return err
}

// CheckTask is Check for the payload of a task, which may have any number of levels and keys.
func CheckTask(raw []byte) error {
	_, err := measure(raw)
	return err
}

// measure refuses what no payload may be.
func measure(raw []byte) (size, error) {
	if !json.Valid(raw) || !utf8.Valid(raw) {
		return size{}, invalid("", "it is not valid JSON in UTF-8")
	}
	// Measured, because the text may be longer than models.MaxPayloadBytes and still fit: PostgreSQL
	// replaces escapes by their characters, drops spaces, and keeps the last of equal keys.
	m := measurer{raw: raw}
	m.space()
	if m.raw[m.at] != '{' {
		return size{}, invalid("", "it must be a JSON object")
	}
	s := m.value(1)
	switch {
	case m.problem != "":
		return s, invalid("", m.problem)
	case s.bytes > models.MaxPayloadBytes:
		return s, &Error{Code: models.CodePayloadTooLarge, Message: fmt.Sprintf(
			"it has %d bytes and may have %d", s.bytes, models.MaxPayloadBytes)}
	}
	return s, nil
}

// size is what a value measures as jsonb.
type size struct {
	// bytes is the length of value::text.
	bytes int
	// levels is the deepest level of an object or array, counted from the payload, which is 1.
	levels int
	keys   int
}

// measurer walks over valid JSON.
type measurer struct {
	raw     []byte
	at      int
	problem string
}

func (m *measurer) space() {
	for m.at < len(m.raw) {
		switch m.raw[m.at] {
		case ' ', '\t', '\n', '\r':
			m.at++
		default:
			return
		}
	}
}

// next skips spaces and one character, and then spaces again.
func (m *measurer) next() {
	m.space()
	m.at++
	m.space()
}

// value measures the value that begins here, and stands after it then. level is the one that it
// would have as an object.
func (m *measurer) value(level int) size {
	m.space()
	switch c := m.raw[m.at]; c {
	case '{':
		return m.object(level)
	case '[':
		return m.array(level)
	case '"':
		n, _ := m.text(false)
		return size{bytes: n}
	case 't', 'n':
		m.at += len("true")
		return size{bytes: len("true")}
	case 'f':
		m.at += len("false")
		return size{bytes: len("false")}
	default:
		return size{bytes: m.number()}
	}
}

func (m *measurer) object(level int) size {
	type member struct {
		key int
		size
	}
	// Of equal keys the last one stays.
	members := map[string]member{}
	m.next()
	for m.raw[m.at] != '}' {
		n, key := m.text(true)
		m.next() // the colon
		members[key] = member{n, m.value(level + 1)}
		m.space()
		if m.raw[m.at] == ',' {
			m.next()
		}
	}
	m.at++
	s := size{bytes: len("{}") + len(", ")*max(len(members)-1, 0), levels: level, keys: len(members)}
	for _, v := range members {
		s.bytes += v.key + len(": ") + v.bytes
		s.keys += v.keys
		s.levels = max(s.levels, v.levels)
	}
	return s
}

func (m *measurer) array(level int) size {
	s := size{bytes: len("[]"), levels: level}
	m.next()
	for first := true; m.raw[m.at] != ']'; first = false {
		v := m.value(level + 1)
		s.bytes += v.bytes
		s.keys += v.keys
		s.levels = max(s.levels, v.levels)
		if !first {
			s.bytes += len(", ")
		}
		m.space()
		if m.raw[m.at] == ',' {
			m.next()
		}
	}
	m.at++
	return s
}

// text measures a string, and decodes it if it is a key.
func (m *measurer) text(decode bool) (bytes int, key string) {
	var out []byte
	bytes = len(`""`)
	m.at++
	for m.raw[m.at] != '"' {
		start := m.at
		r, n := utf8.DecodeRune(m.raw[m.at:])
		m.at += n
		if r == '\\' {
			r = m.escape()
		}
		switch {
		case r == '"' || r == '\\' || r == '\b' || r == '\f' || r == '\n' || r == '\r' || r == '\t':
			bytes += 2
		case r < ' ':
			bytes += len(`\u0001`)
		default:
			bytes += utf8.RuneLen(r)
		}
		if decode {
			if n == 1 && m.at == start+1 {
				out = append(out, m.raw[start])
			} else {
				out = utf8.AppendRune(out, r)
			}
		}
	}
	m.at++
	return bytes, string(out)
}

// escape reads what follows a backslash.
func (m *measurer) escape() rune {
	c := m.raw[m.at]
	m.at++
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'u':
	default:
		return rune(c)
	}
	r := m.hex()
	switch {
	case r == 0:
		m.problem = `a text must not hold the character \u0000`
		return ' '
	case !utf16.IsSurrogate(r):
		return r
	}
	if m.raw[m.at] == '\\' && m.raw[m.at+1] == 'u' {
		m.at += 2
		if r = utf16.DecodeRune(r, m.hex()); r != utf8.RuneError {
			return r
		}
	}
	m.problem = `a text must not hold half of a surrogate pair`
	return ' '
}

// hex reads four hexadecimal digits.
func (m *measurer) hex() rune {
	n, _ := strconv.ParseUint(string(m.raw[m.at:m.at+4]), 16, 32)
	m.at += 4
	return rune(n)
}

// number measures a number as numeric writes it: without an exponent, with as many digits after the
// point as were given.
func (m *measurer) number() int {
	const most = 1 << 30
	negative := m.raw[m.at] == '-'
	if negative {
		m.at++
	}
	var digits []byte
	fraction, point, exponent := 0, false, 0
scan:
	for ; m.at < len(m.raw); m.at++ {
		switch c := m.raw[m.at]; {
		case c >= '0' && c <= '9':
			digits = append(digits, c)
			if point {
				fraction++
			}
		case c == '.':
			point = true
		default:
			break scan
		}
	}
	if m.at < len(m.raw) && (m.raw[m.at] == 'e' || m.raw[m.at] == 'E') {
		end := m.at + 1
		for end < len(m.raw) && (m.raw[end] == '+' || m.raw[end] == '-' || m.raw[end] >= '0' && m.raw[end] <= '9') {
			end++
		}
		e, err := strconv.Atoi(string(m.raw[m.at+1 : end]))
		if err != nil || e > most || e < -most {
			m.problem = "a number is out of range"
			e = 0
		}
		exponent = e
		m.at = end
	}
	scale := max(fraction-exponent, 0)
	// The digits before the point, without leading zeros.
	leading := 0
	for leading < len(digits) && digits[leading] == '0' {
		leading++
	}
	zero := leading == len(digits)
	whole := 1
	if !zero {
		whole = max(len(digits)-fraction+exponent-leading, 1)
	}
	// What numeric can hold.
	if scale > 16383 || whole > 131072 {
		m.problem = "a number has more than 16383 digits after the point, or 131072 before it"
	}
	n := whole
	if scale > 0 {
		n += 1 + scale
	}
	if negative && !zero {
		n++
	}
	return n
}
