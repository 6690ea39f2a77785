package payload

import (
	"bytes"
	"strconv"
)

// maxWholeDigits is how many digits an integer may have that a float64 holds exactly, as its bounds
// are written.
const maxWholeDigits = 15

// fitsJSON reports whether JSON, as encoding/json or PostgreSQL writes it, fits the shape. It reads
// the text once and allocates nothing, so that neither an application that enqueues many jobs nor
// the worker that works them decodes each only to check it.
//
// False decides nothing: the schema does. So it returns false for what is rare: spaces in other
// places, names with escapes, repeated names, long numbers. The text must be valid JSON; of other
// text the result says nothing.
func (sh *shape) fitsJSON(raw []byte) bool {
	rest, ok := sh.skim(raw)
	return ok && len(rest) == 0
}

// skim reads the value that a text begins with, and returns what follows it.
func (sh *shape) skim(b []byte) (rest []byte, ok bool) {
	if len(b) == 0 || sh.nothing {
		return nil, false
	}
	if sh.anything {
		return skip(b)
	}
	switch b[0] {
	case '{':
		return sh.skimObject(b[1:])
	case '[':
		return sh.skimArray(b[1:])
	case '"':
		_, rest, ok = skimText(b)
		return rest, ok && sh.kinds&text != 0
	case 't':
		rest, ok = bytes.CutPrefix(b, []byte("true"))
		return rest, ok && sh.kinds&boolean != 0
	case 'f':
		rest, ok = bytes.CutPrefix(b, []byte("false"))
		return rest, ok && sh.kinds&boolean != 0
	case 'n':
		rest, ok = bytes.CutPrefix(b, []byte("null"))
		return rest, ok && sh.kinds&null != 0
	default:
		return sh.skimNumber(b)
	}
}

func (sh *shape) skimObject(b []byte) (rest []byte, ok bool) {
	if sh.kinds&object == 0 || !sh.sorts {
		return nil, false
	}
	var seen uint64
	if b, ok = bytes.CutPrefix(b, []byte("}")); ok {
		return b, sh.must == 0
	}
	for {
		name, rest, ok := skimText(b)
		if !ok || len(rest) == 0 || rest[0] != ':' || bytes.IndexByte(name, '\\') >= 0 {
			return nil, false
		}
		of, known := sh.fields[string(name)]
		switch {
		case !known && sh.others == nil:
			return nil, false
		case !known:
			of = sh.others
		case seen&of.bit != 0:
			return nil, false
		default:
			seen |= of.bit
		}
		if rest, ok = of.skim(unspaced(rest[1:])); !ok || len(rest) == 0 {
			return nil, false
		}
		switch rest[0] {
		case ',':
			b = unspaced(rest[1:])
		case '}':
			return rest[1:], seen&sh.must == sh.must
		default:
			return nil, false
		}
	}
}

func (sh *shape) skimArray(b []byte) (rest []byte, ok bool) {
	if sh.kinds&array == 0 {
		return nil, false
	}
	if b, ok = bytes.CutPrefix(b, []byte("]")); ok {
		return b, true
	}
	for {
		if b, ok = sh.items.skim(b); !ok || len(b) == 0 {
			return nil, false
		}
		switch b[0] {
		case ',':
			b = unspaced(b[1:])
		case ']':
			return b[1:], true
		default:
			return nil, false
		}
	}
}

// unspaced drops the space that PostgreSQL writes after a comma and a colon.
func unspaced(b []byte) []byte { return bytes.TrimPrefix(b, []byte(" ")) }

// skimText reads a text, and returns what stands between its quotes.
func skimText(b []byte) (inside, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return b[1:i], b[i+1:], true
		}
	}
	return nil, nil, false
}

func (sh *shape) skimNumber(b []byte) (rest []byte, ok bool) {
	if sh.kinds&number == 0 {
		return nil, false
	}
	end, whole := 0, true
	for ; end < len(b) && b[end] != ',' && b[end] != '}' && b[end] != ']'; end++ {
		if c := b[end]; (c < '0' || c > '9') && (c != '-' || end > 0) {
			whole = false
		}
	}
	if whole && sh.from == nil && sh.to == nil {
		return b[end:], true
	}
	if !whole && (sh.whole || sh.from != nil || sh.to != nil) || end > maxWholeDigits {
		return nil, false
	}
	if !whole {
		return b[end:], true
	}
	v, err := strconv.ParseInt(string(b[:end]), 10, 64)
	f := float64(v)
	return b[end:], err == nil && (sh.from == nil || f >= *sh.from) && (sh.to == nil || f <= *sh.to)
}

// skip reads any value, and returns what follows it.
func skip(b []byte) (rest []byte, ok bool) {
	depth := 0
	for len(b) > 0 {
		switch b[0] {
		case '"':
			if _, b, ok = skimText(b); !ok {
				return nil, false
			}
		case '{', '[':
			depth++
			b = b[1:]
			continue
		case '}', ']':
			depth--
			b = b[1:]
		case ',', ':', ' ':
			b = b[1:]
			continue
		default:
			end := bytes.IndexAny(b, ",}]")
			if end < 0 {
				end = len(b)
			}
			b = b[end:]
		}
		if depth == 0 {
			return b, true
		}
	}
	return nil, false
}
