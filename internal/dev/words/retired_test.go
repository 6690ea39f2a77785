package words

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// retired is a word that is not used any more, in a sense that the pattern tells from others where
// it can.
type retired struct {
	word    string
	pattern string
	instead string
	// except are lines that may have it all the same.
	except []exception
}

// exception is a place where a retired word means something else.
type exception struct {
	// path is a file, or a folder with a slash at its end.
	path string
	// line is a pattern that the line must match; empty: every line.
	line string
	why  string
}

// payment: in a payment, settling is money's own word.
var payment = []exception{
	{path: "accounting/posting/", why: "the amount of a payment that arrived in another currency is doc.settled"},
	{path: "models/document.go", line: "Settled", why: "the same, in the model of documents"},
	{path: "models/amounts.go", line: "(?i)settled", why: "the same, among a document's amounts"},
	{path: "migrations/", line: `@\.settled\.amount`, why: "the same, in the content of a document"},
	{path: "internal/moving/importer/", line: "(?i)settled", why: "the same, in imports"},
	{path: "internal/moving/importer/cii.go", line: `"ram .*Settlement`, why: "names of UN/CEFACT"},
	{path: "docs/rules.md", line: "settled", why: "the same, in the rules"},
	{path: "docs/import.md", line: "settled", why: "the same, in the imports' page"},
	{
		path: "internal/store/erasures_documents.go", line: "'settled'",
		why: "the same, among the members of a document that an erasure keeps",
	},
	{path: "models/strictjson/strictjson_test.go", line: "settled", why: "the same, in a content that is read"},
	{
		path: "internal/moving/sample/known_test.go", line: "settlement.json",
		why: "the name of a published example invoice",
	},
}

// figures: a row of figures keeps its name.
var figures = []exception{
	{path: "bench/faults.go", line: "PostgreSQL away for 15 s", why: "the name of a row of figures"},
	{path: "docs/performance.md", line: "PostgreSQL away for 15 s", why: "the same"},
}

// words are the retired words. Patterns match names in code as well: they look into compound words.
var words = []retired{
	{
		word: "settle, settlement", pattern: `(?i)settl(e|ed|es|ing|ement|ements)`, instead: "complete, completion",
		except: payment,
	},
	{word: "take-over", pattern: `(?i)\btake-?overs?\b|TakeOver|\b(takes?|taken|taking|took) (it |them |rows |leases? |the lease |the turn )?over\b`, instead: "reclaim"},
	{
		word:    "somebody, nobody, whoever, everybody, anybody",
		pattern: `(?i)\b(some|no|every|any)body('s|s)?\b|\bwho(so)?ever\b`,
		instead: "the subject's name: the worker, another transaction, a caller", except: []exception{
			{
				path: "internal/dev/devstack/", line: `"nobody"|user postgres or (else )?nobody`,
				why: "the Unix user of that name",
			},
			{path: "docs/dev-stack.md", line: "`nobody`", why: "the Unix user of that name"},
			{path: "server/", line: `http\.NoBody`, why: "a name of net/http"},
		},
	},
	{word: "daybook background", pattern: `\bdaybook background\b|` + "`background " + `[a-z]`, instead: "daybook jobs"},
	{word: "goodbye", pattern: `(?i)good-?bye`, instead: "grace period"},
	{word: "outlived", pattern: `(?i)outliv`, instead: "detached"},
	{word: "away", pattern: `(?i)\b(is|are|was|were|be|been|goes|went|gone|database|temporal|postgresql) away\b|_AWAY|[a-z]Away\b`, instead: "unavailable", except: figures},
	{word: "glance", pattern: `(?i)\bglances?\b`, instead: "scan"},
	{
		word:    "look (as a noun)",
		pattern: `(?i)\b(a|the|each|every|first|last|next|these|by|two|ten|between|further|and) looks?\b[^ ]|\b(two|ten|by|between|of) looks\b|\bthe (first|last|next) look\b`, instead: "scan, read",
	},
	{
		word: "mark (as a noun)", pattern: `(?i)\b(behind|past|before) (a|the|its|their|each|every) marks?\b`,
		instead: "cursor",
	},
	{
		word: "ring", pattern: `(?i:\b(a|the|its|each|this) rings?\b)|\bring[A-Z_.]|[a-z]Ring\b`,
		instead: "partitions and their cursors",
	},
	{word: "flow", pattern: `(?i:\b(organizations?|their|its|whose|a) flows?\b|organizations_flow)|\bFlow\b|[a-z]Flows?\b`, instead: "limits"},
	{
		word: "ALL_NOT_SAID", pattern: `ALL_NOT_SAID|(?i)\bsays all\b|saysAll\b|notAllError`,
		instead: "confirmation required",
	},
	{
		word: "one organization too much", pattern: `(?i)organization too (much|many)`,
		instead: "throttling one organization",
	},
}

const root = "../../.."

// file is one that is held to the vocabulary. Its first line is its name.
type file struct {
	path  string
	lines []string
	// lower are the lines in lower case.
	lower []string
}

// repository is read once for all tests.
var repository = sync.OnceValues(func() ([]file, error) {
	var found []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			skip := name != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" ||
				d.Name() == "bin" || name == "internal/dev/words"
			if skip {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains([]string{".md", ".go", ".sql"}, filepath.Ext(name)) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all := name + "\n" + string(text)
		found = append(found, file{
			path: name, lines: strings.Split(all, "\n"),
			lower: strings.Split(strings.ToLower(all), "\n"),
		})
		return nil
	})
	return found, err
})

// files calls f for each line of each file that is held to the vocabulary; number 0 is the file's
// name.
func files(t *testing.T, f func(path string, number int, line string)) {
	t.Helper()
	all, err := repository()
	require.NoError(t, err)
	for _, file := range all {
		for i, line := range file.lines {
			f(file.path, i, line)
		}
	}
}

func (e exception) isFor(path string) bool {
	return e.path == path || strings.HasSuffix(e.path, "/") && strings.HasPrefix(path, e.path)
}

func (e exception) covers(path, line string) bool {
	return e.isFor(path) && (e.line == "" || regexp.MustCompile(e.line).MatchString(line))
}

// TestRetiredWords finds retired words in documents, code and names of files.
func TestRetiredWords(t *testing.T) {
	t.Parallel()
	all, err := repository()
	require.NoError(t, err)
	for _, w := range words {
		pattern, parts := regexp.MustCompile(w.pattern), needed(t, w.pattern)
		for _, file := range all {
			for number, line := range file.lines {
				if !containsAny(file.lower[number], parts) {
					continue
				}
				excepted := func(e exception) bool { return e.covers(file.path, line) }
				if found := pattern.FindString(line); found != "" && !slices.ContainsFunc(w.except, excepted) {
					t.Errorf("%s:%d: %q: instead of %s, write %s\n\t%s", file.path, number, strings.TrimSpace(found), w.word,
						w.instead, strings.TrimSpace(line))
				}
			}
		}
	}
}

// TestExceptionsAreNeeded fails for an exception that nothing needs any more.
func TestExceptionsAreNeeded(t *testing.T) {
	t.Parallel()
	for _, w := range words {
		pattern := regexp.MustCompile(w.pattern)
		for _, e := range w.except {
			used := false
			files(t, func(path string, _ int, line string) {
				used = used || e.isFor(path) && pattern.MatchString(line) && e.covers(path, line)
			})
			assert.True(t, used, "%s in %s (%s)", w.word, e.path, e.why)
		}
	}
}
