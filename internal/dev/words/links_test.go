package words

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	code "github.com/daybook-dev/daybook/internal/dev/pages"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#{1,6} (.+)$`)
	// noAnchor are the characters of a heading that GitHub leaves out of its anchor.
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	target   = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	// command is a line of an indented block, or a span of code, that calls make.
	command = regexp.MustCompile("(?:^    |`)(?:[A-Z_]+=\\S+ )*make ([a-z][a-z-]*)")
)

// pages are the repository's Markdown documents by their path, each as its lines.
func pages(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	files(t, func(path string, number int, line string) {
		if number > 0 && strings.HasSuffix(path, ".md") {
			found[path] = append(found[path], line)
		}
	})
	return found
}

// prose calls f for each line of a page that stands outside of its fenced blocks of code.
func prose(lines []string, f func(number int, line string)) {
	fenced := false
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if !fenced {
			f(i+1, line)
		}
	}
}

// anchors are the names by which a link reaches the headings of a page.
func anchors(lines []string) []string {
	var names []string
	prose(lines, func(_ int, line string) {
		if m := heading.FindStringSubmatch(line); m != nil {
			names = append(names, strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
		}
	})
	return names
}

// TestLinksResolve: a link inside the repository leads to a file or folder that is there, and to a
// heading that the page has.
func TestLinksResolve(t *testing.T) {
	t.Parallel()
	all := pages(t)
	links := 0
	for page, lines := range all {
		from := path.Dir(page)
		if page == "bench/report/skeleton.md" {
			from = "docs" // docs/performance.md is written from it
		}
		prose(lines, func(number int, line string) {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				links++
				name, anchor, hasAnchor := strings.Cut(m[1], "#")
				to := page
				if name != "" {
					to = path.Join(from, name)
				}
				_, err := os.Stat(filepath.Join(root, filepath.FromSlash(to)))
				if assert.NoError(t, err, "%s:%d: %s", page, number, m[1]) && hasAnchor {
					assert.True(t, slices.Contains(anchors(all[to]), anchor), "%s:%d: %s: %s has no such heading", page, number,
						m[1], to)
				}
			}
		})
	}
	assert.Greater(t, links, 100, "links that were found")
}

// TestMakeTargetsExist: every call of make that a document shows names a target of the Makefile, or of
// the one beside the document.
func TestMakeTargetsExist(t *testing.T) {
	t.Parallel()
	targets := func(dir string) (names []string) {
		makefile, err := os.ReadFile(filepath.Join(root, dir, "Makefile"))
		require.True(t, err == nil || errors.Is(err, fs.ErrNotExist), err)
		for _, m := range target.FindAllStringSubmatch(string(makefile), -1) {
			names = append(names, m[1])
		}
		return names
	}
	calls, own := 0, targets(".")
	for page, lines := range pages(t) {
		known := slices.Concat(own, targets(path.Dir(page)))
		for i, line := range lines {
			for _, m := range command.FindAllStringSubmatch(line, -1) {
				calls++
				assert.True(t, slices.Contains(known, m[1]), "%s:%d: the Makefile has no target %s", page, i+1, m[1])
			}
		}
	}
	assert.Greater(t, calls, 20, "calls that were found")
}

// TestMakeHasWhatThePagesGiveIt: the targets of blocks, the variables that they set, and the folders
// and scenarios that these name; the same for go.
func TestMakeHasWhatThePagesGiveIt(t *testing.T) {
	t.Parallel()
	makefiles := ""
	for _, name := range []string{"Makefile", "cmd/daybook/internal/newapp/app/Makefile"} { // daybook init writes the second one
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		makefiles += "\n" + string(text)
	}
	named := func(pattern *regexp.Regexp, text string) (names []string) {
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		return names
	}
	targets := named(target, makefiles)
	files, err := filepath.Glob(filepath.Join(root, "bench/*.go"))
	require.NoError(t, err)
	var scenarios []string
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		scenarios = append(scenarios, named(regexp.MustCompile(`\bname: "([a-z-]+)", topic:`), string(text))...)
	}
	given := 0
	for _, program := range []string{"make", "go"} {
		commands, err := code.Commands(program)
		require.NoError(t, err)
		for _, c := range commands {
			where := fmt.Sprintf("%s:%d: %s", c.Page, c.Line, c)
			for _, word := range slices.Concat(c.Env, c.Words[1:]) {
				name, value, is := strings.Cut(word, "=")
				switch {
				case is && !strings.HasPrefix(word, "-"):
					given++
					assert.True(t, regexp.MustCompile(`\b`+name+`\b`).MatchString(makefiles), "%s: no Makefile has %s", where, name)
				case program == "make" && !strings.HasPrefix(word, "-"):
					assert.Contains(t, targets, word, where)
				default:
					value = word
				}
				if name == "SCENARIO" {
					for scenario := range strings.SplitSeq(value, ",") {
						assert.Contains(t, scenarios, scenario, where)
					}
				}
				if folder, is := strings.CutPrefix(value, "./"); is {
					assert.DirExists(t, filepath.Join(root, strings.TrimSuffix(folder, "...")), where)
				}
			}
		}
	}
	assert.Greater(t, given, 20)
}

// pageNamed is a page in a text that a program prints.
var pageNamed = regexp.MustCompile(`"[^"]*(?:[^/."]|")docs/[a-z-]+\.md`)

// TestProgramsNamePagesByTheirAddress: who has the program from a package has no docs beside it.
func TestProgramsNamePagesByTheirAddress(t *testing.T) {
	t.Parallel()
	named := 0
	files(t, func(path string, number int, line string) {
		if number == 0 || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasPrefix(path, "internal/dev/") || strings.HasPrefix(path, "bench/") || strings.HasPrefix(strings.TrimSpace(line), "//") {
			return
		}
		if strings.Contains(line, "/blob/main/docs/") {
			named++
		}
		assert.NotRegexp(t, pageNamed, line, "%s:%d: want https://github.com/daybook-dev/daybook/blob/main/docs/…", path, number)
	})
	assert.Greater(t, named, 30)
}
