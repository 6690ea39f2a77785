package payload

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Difference is a place at which two payloads differ.
type Difference struct {
	// Place is a JSON pointer, such as /lines/0/net; empty: the payload as a whole.
	Place string `json:"place"`
	// Before and After are the JSON of the values; empty: there is none.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Diff is where two payloads differ, in the order of places. Members of objects and elements of
// arrays are compared one by one.
func Diff(before, after json.RawMessage) []Difference {
	return differences(nil, "", decoded(before), decoded(after))
}

func decoded(raw json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	_ = d.Decode(&v) // it comes from the database, or was checked
	return v
}

// missing stands for a value that is not there.
type missing struct{}

func differences(list []Difference, place string, before, after any) []Difference {
	if reflect.DeepEqual(before, after) {
		return list
	}
	old, was := before.(map[string]any)
	now, is := after.(map[string]any)
	if was && is {
		names := maps.Clone(old)
		maps.Copy(names, now)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			token := strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
			list = differences(list, place+"/"+token, member(old, name), member(now, name))
		}
		return list
	}
	first, was := before.([]any)
	second, is := after.([]any)
	if was && is {
		for i := range max(len(first), len(second)) {
			list = differences(list, place+"/"+strconv.Itoa(i), element(first, i), element(second, i))
		}
		return list
	}
	return append(list, Difference{place, written(before), written(after)})
}

func member(object map[string]any, name string) any {
	if v, ok := object[name]; ok {
		return v
	}
	return missing{}
}

func element(array []any, i int) any {
	if i < len(array) {
		return array[i]
	}
	return missing{}
}

func written(v any) string {
	if _, none := v.(missing); none {
		return ""
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it was JSON
	return strings.TrimSuffix(out.String(), "\n")
}
