package strictyaml_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models/strictyaml"
)

type settings struct {
	Name    string        `json:"name"`
	Number  int           `json:"number"`
	Small   int8          `json:"small"`
	On      bool          `json:"on"`
	Timeout time.Duration `json:"timeout"`
	Below   []settings    `json:"below"`
}

func TestWhatIsPlainIsRead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"name: a\nnumber: 3\non: true\ntimeout: 1m30s\nbelow:\n  - {small: -3}\n",
		`{"name": "a", "number": 3, "on": true, "timeout": "1m30s", "below": [{"small": -3}]}`,
		"\ufeffname: a\nnumber: 3\non: True\ntimeout: 90s\nbelow: [{small: -3}]",
	} {
		var s settings
		require.NoError(t, strictyaml.Unmarshal([]byte(text), &s), text)
		assert.Equal(t, settings{Name: "a", Number: 3, On: true, Timeout: 90 * time.Second, Below: []settings{{Small: -3}}},
			s)
	}
	for _, empty := range []string{"", "# nothing\n", "---\n", "null"} {
		s := settings{Number: 7}
		require.NoError(t, strictyaml.Unmarshal([]byte(empty), &s))
		assert.Equal(t, 7, s.Number)
	}
}

func TestWhatMeansSomethingElseIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"number: 2.9":          "line 1: /number is 2.9, and a whole number that fits into 64 bits is wanted",
		"name: a\nnumber: 3.0": "line 2: /number is 3.0, and a whole number",
		"number: 1e3":          "/number is 1e3",
		"number: .inf":         ".inf is not a plain number",
		"number: 0x10": "line 1: 0x10 is not a plain number; write it in decimal digits, or put a text in " +
			"quotes",
		"number: 010":                 "010 is not a plain number",
		"number: 0o10":                "0o10 is not a plain number",
		"number: 1_000":               "1_000 is not a plain number",
		"number: +3":                  "+3 is not a plain number",
		"number: 9223372036854775808": "/number is 9223372036854775808",
		"small: 128":                  "/small is 128, and a whole number that fits into 8 bits is wanted",
		"number: '3'":                 "/number is a text",
		"on: yes":                     "/on is a text, and true or false is wanted",
		"on: 1":                       "/on is a number, and true or false",
		"name: 5":                     "/name is a number, and a text is wanted",
		"number:":                     "line 1: the value is missing",
		"below:\n  - number: ~":       "line 2: the value is missing",
		"timeout: 30":                 "/timeout: a duration such as 30s or 5m is wanted, and not 30",
		"naem: a":                     `there is no field "naem": correct its name, or remove it`,
		"number: 1\nnumber: 2":        `line 2: the key "number" stands here a second time`,
		"number: 1\nNumber: 2":        "is there twice",
		"number: 1\n---\nnumber: 2":   "a second YAML document starts here",
		"name: &a b\nbelow: *a":       "aliases are not allowed",
		"<<: {number: 1}":             "a key must be a plain name",
		"number: [":                   "not valid YAML",
	} {
		assert.ErrorContains(t, strictyaml.Unmarshal([]byte(text), &settings{}), want, text)
	}
}

// FuzzUnmarshal: whatever a file holds, it is read or refused in words.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte("name: a\nbelow: [{number: 1}]"))
	f.Add([]byte("\xff\xfea\x00"))
	f.Fuzz(func(t *testing.T, source []byte) {
		if err := strictyaml.Unmarshal(source, &settings{}); err != nil {
			assert.NotEmpty(t, err.Error())
		}
	})
}
