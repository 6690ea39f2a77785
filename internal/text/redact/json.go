package redact

import (
	"bytes"
	"encoding/json"
	"strings"
)

// secretParts are what names of members that hold a secret have in them, in small letters and
// without separators.
var secretParts = []string{
	"password", "passwd", "passphrase", "secret", "token", "authorization", "apikey", "accesskey", "privatekey",
	"signingkey", "credential", "cookie",
	"signature", "cardnumber", "connectionstring",
}

// secretNames are whole names of such members that are too short to be looked for within others.
var secretNames = map[string]bool{
	"pwd": true, "pass": true, "auth": true, "pin": true, "jwt": true, "otp": true, "cvc": true, "cvv": true, "dsn": true,
	"iban": true, "bearer": true,
}

// secretMembers are the members of payloads of the built-in types of which every value may be a
// secret, whatever its name.
var secretMembers = map[string][]string{"webhook": {"headers"}}

// IsSecretName reports whether the value of a member with that name is masked.
func IsSecretName(name string) bool {
	plain := strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(name))
	if secretNames[plain] {
		return true
	}
	for _, part := range secretParts {
		if strings.Contains(plain, part) {
			return true
		}
	}
	return false
}

// JSON is a payload, a result or the progress of a job of a type, as indented text without secrets:
// Mask stands for the values of members whose names say that they are one, for those that a
// built-in type declares, and for what Text finds in other texts. secrets are names of further
// members, at any level. Of what is no JSON nothing is shown.
func JSON(jobType string, raw json.RawMessage, secrets ...string) string {
	if len(raw) == 0 {
		return ""
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return Mask
	}
	more := make(map[string]bool, len(secrets))
	for _, name := range secrets {
		more[name] = true
	}
	whole := make(map[string]bool)
	for _, name := range secretMembers[jobType] {
		whole[name] = true
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // a template escapes it
	encoder.SetIndent("", "  ")
	if encoder.Encode(masked(v, more, whole)) != nil {
		return Mask
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// masked masks a value. Of the members that whole names, every value within is masked; it holds for
// the first level alone.
func masked(v any, secrets, whole map[string]bool) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			switch {
			case IsSecretName(name) || secrets[name]:
				v[name] = hidden(value)
			case whole[name]:
				v[name] = maskedAll(value)
			default:
				v[name] = masked(value, secrets, nil)
			}
		}
	case []any:
		for i := range v {
			v[i] = masked(v[i], secrets, nil)
		}
	case string:
		return Text(v)
	}
	return v
}

// hidden stands for a secret; one that is not there is said.
func hidden(v any) any {
	if v == nil || v == "" {
		return v
	}
	return Mask
}

// maskedAll keeps the names of an object's members and masks every value.
func maskedAll(v any) any {
	object, ok := v.(map[string]any)
	if !ok {
		return hidden(v)
	}
	for name, value := range object {
		object[name] = hidden(value)
	}
	return object
}
