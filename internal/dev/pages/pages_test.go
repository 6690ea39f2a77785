package pages

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

const sample = "# A page\n" +
	"\nText with `daybook a \\| jq .b` and a span `over\ntwo lines`.\n" +
	"\n    one 'two words' \"$THREE four\" # why\n    A=1 B='x y' five --six \\\n      seven > file && eight | nine\n\n    ten\n" +
	"\n## A section\n" +
	"\n- A point:\n\n      psql -c \"SELECT 1\"\n" +
	"\n  ```sql\n  SELECT 1\n    FROM a;\n  ```\n" +
	"\n```console\n$ daybook status\nall is well: $ 3\n$ daybook doctor\n```\n"

func TestParse(t *testing.T) {
	t.Parallel()
	p := parse("docs/a.md", sample)
	assert.Equal(t, []Block{
		{"docs/a.md", "", 6, "sh", "one 'two words' \"$THREE four\" # why\nA=1 B='x y' five --six \\\n  seven > file && eight | nine\n\nten\n"},
		{"docs/a.md", "A section", 16, "sh", "psql -c \"SELECT 1\"\n"},
		{"docs/a.md", "A section", 19, "sql", "SELECT 1\n  FROM a;\n"},
		{"docs/a.md", "A section", 24, "console", "$ daybook status\nall is well: $ 3\n$ daybook doctor\n"},
	}, p.blocks)
	assert.Equal(t, []string{"all is well: $ 3\n", ""}, p.blocks[3].Outputs())
	assert.Equal(t, []Block{
		{"docs/a.md", "", 3, "", "daybook a | jq .b"},
		{"docs/a.md", "", 3, "", "over two lines"},
	}, p.spans)
}

func TestCommandLines(t *testing.T) {
	t.Parallel()
	none := []string{}
	assert.Equal(t, []Command{
		{"docs/a.md", 3, none, []string{"daybook", "a"}, false},
		{"docs/a.md", 3, none, []string{"jq", ".b"}, false},
		{"docs/a.md", 3, none, []string{"over", "two", "lines"}, false},
		{"docs/a.md", 6, none, []string{"one", "two words", "$THREE four"}, true},
		{"docs/a.md", 7, []string{"A=1", "B=x y"}, []string{"five", "--six", "seven"}, true},
		{"docs/a.md", 8, none, []string{"eight"}, true},
		{"docs/a.md", 8, none, []string{"nine"}, true},
		{"docs/a.md", 10, none, []string{"ten"}, true},
		{"docs/a.md", 16, none, []string{"psql", "-c", "SELECT 1"}, true},
		{"docs/a.md", 24, none, []string{"daybook", "status"}, true},
		{"docs/a.md", 26, none, []string{"daybook", "doctor"}, true},
	}, parse("docs/a.md", sample).commands())
	assert.Equal(t, []string{"jobs", "edit", `[{"op": "a b"}]`, ""}, Words(`jobs edit '[{"op": "a b"}]' ""`))
}
