package queue

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// DocumentKey is what identifies a row of an application's own table: a whole number, a text, or a
// UUID of any package whose UUIDs are [16]byte.
type DocumentKey interface {
	~int | ~int32 | ~int64 | ~string | ~[16]byte
}

// DocumentID is the document id of a row of an application's own table: the table's namespace and
// the row's key, "invoice:42". Rows of two tables may have the same key; their documents must not,
// so give each type of document a namespace. In SQL it is 'invoice:' || id, for UUIDs as well.
//
// It panics if the namespace is empty or has a colon.
func DocumentID[K DocumentKey](namespace string, key K) string {
	if namespace == "" || strings.Contains(namespace, ":") {
		panic(fmt.Sprintf("queue: %q cannot be a namespace of document ids: it must not be empty or have a colon",
			namespace))
	}
	return namespace + ":" + formatKey(key)
}

func formatKey[K DocumentKey](key K) string {
	switch v := reflect.ValueOf(key); v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Array:
		var b [16]byte
		reflect.Copy(reflect.ValueOf(&b).Elem(), v)
		s := hex.EncodeToString(b[:])
		return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
	default:
		return strconv.FormatInt(v.Int(), 10)
	}
}

// ParseDocumentID is the reverse of DocumentID: the namespace is what is before the first colon. It
// accepts only what DocumentID returns, so that no row has two documents: "invoice:042" and
// "invoice:+42" are not row 42, and a UUID has lower-case digits and its four hyphens.
//
// Errors: ErrDocumentID.
func ParseDocumentID[K DocumentKey](document string) (namespace string, key K, err error) {
	namespace, text, ok := strings.Cut(document, ":")
	if !ok || namespace == "" {
		return "", key, fmt.Errorf("%w: %q has no namespace", ErrDocumentID, document)
	}
	if err := parseKey(text, &key); err != nil || formatKey(key) != text {
		var none K
		return "", none, fmt.Errorf("%w: %q is not what DocumentID returns for a key of type %T", ErrDocumentID, document,
			none)
	}
	return namespace, key, nil
}

func parseKey[K DocumentKey](text string, key *K) error {
	switch v := reflect.ValueOf(key).Elem(); v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Array:
		b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
		if err != nil || len(b) != v.Len() {
			return ErrDocumentID
		}
		reflect.Copy(v, reflect.ValueOf(b))
	default:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return err
		}
		v.SetInt(n)
	}
	return nil
}
