package handlers

import (
	"bytes"
	"encoding/json"
	"slices"
)

// columns say which column each answer of a form goes to; nil: the one of its own name.
type columns map[string]string

// skipped are the names of answers that are not written.
type skipped struct{ names []string }

func (s *skipped) add(name string) {
	if len(s.names) < maxAirtableIDs && !slices.Contains(s.names, name) {
		s.names = append(s.names, name)
	}
}

// columnsOf reads the description of a form. It knows the three shapes that AirtableSync.Schema
// names.
func columnsOf(schema json.RawMessage) (columns, error) {
	if len(schema) == 0 || bytes.Equal(bytes.TrimSpace(schema), []byte("null")) {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(schema, &members); err != nil {
		return nil, invalid("schema is not an object")
	}
	all := columns{}
	var list []map[string]any
	if raw, ok := members["fields"]; ok && json.Unmarshal(raw, &list) == nil {
		for _, field := range list {
			if key := firstText(field, "id", "key", "name"); key != "" {
				all[key] = columnName(field, key)
			}
		}
		return all.orNone(), nil
	}
	var properties map[string]json.RawMessage
	if raw, ok := members["properties"]; ok && json.Unmarshal(raw, &properties) == nil {
		members = properties
	}
	for key, raw := range members {
		var name string
		var field map[string]any
		switch {
		case json.Unmarshal(raw, &name) == nil && name != "":
			all[key] = name
		case json.Unmarshal(raw, &field) == nil && field != nil:
			all[key] = columnName(field, key)
		}
	}
	return all.orNone(), nil
}

// orNone is nil for a description that names no field.
func (c columns) orNone() columns {
	if len(c) == 0 {
		return nil
	}
	return c
}

// columnName is the column that a field's description names, in the order of how expressly it does.
func columnName(field map[string]any, key string) string {
	if name := firstText(field, "airtableField", "airtable_field", "column", "label", "title", "name"); name != "" {
		return name
	}
	return key
}

// firstText is the first member that is a text with content.
func firstText(members map[string]any, names ...string) string {
	for _, name := range names {
		if text, ok := members[name].(string); ok && text != "" {
			return text
		}
	}
	return ""
}

// row is a submission by columns. Answers that the form's description does not have are left out:
// Airtable refuses a record with a column that the table does not have.
func (c columns) row(data json.RawMessage, left *skipped) (map[string]any, error) {
	answers := map[string]any{}
	if len(data) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber() // a number is written as it came
		if err := decoder.Decode(&answers); err != nil {
			return nil, invalid("data is not an object with a member for each answer")
		}
	}
	row := map[string]any{}
	for key, answer := range answers {
		name := key
		if c != nil {
			if name = c[key]; name == "" {
				left.add(key)
				continue
			}
		}
		row[name] = cell(answer)
	}
	slices.Sort(left.names)
	return row, nil
}

// cell is an answer as Airtable takes it: texts, numbers, yes and no as they are, lists of them as
// choices, files as attachments, and everything else as JSON text.
func cell(answer any) any {
	switch v := answer.(type) {
	case map[string]any:
		if file, ok := attachment(v); ok {
			return []any{file}
		}
		return jsonText(v)
	case []any:
		files := make([]any, 0, len(v))
		for _, item := range v {
			switch item := item.(type) {
			case map[string]any:
				if file, ok := attachment(item); ok {
					files = append(files, file)
				}
			case []any:
				return jsonText(v)
			}
		}
		switch {
		case len(files) == len(v) && len(v) > 0:
			return files
		case slices.ContainsFunc(v, func(item any) bool { _, object := item.(map[string]any); return object }):
			return jsonText(v)
		}
	}
	return answer
}

// attachment is a file as Airtable takes it: its address, and its name.
func attachment(v map[string]any) (any, bool) {
	address, ok := v["url"].(string)
	if !ok || !isHTTP(address) {
		return nil, false
	}
	file := map[string]any{"url": address}
	if name := firstText(v, "filename", "name"); name != "" {
		file["filename"] = name
	}
	return file, true
}

// jsonText is a value as JSON.
func jsonText(v any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(v) != nil {
		return ""
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}
