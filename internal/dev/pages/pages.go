// Package pages reads the code that README.md and docs show: the blocks, each with its language, and
// the command lines in them. Tests compile and run what it finds; its own test fails where a block
// is of a kind that no test reads.
package pages

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The languages of blocks that have command lines.
const (
	// Shell is also the language of a block that is indented by four blanks instead of fenced.
	Shell = "sh"
	// Console is a session: command lines behind "$ ", and what they print.
	Console = "console"
)

// Block is a block of code.
type Block struct {
	// Page is the page's path in the repository, as "docs/jobs.md"; Section is the page's last heading
	// of the second level, and empty before the first.
	Page, Section string
	// Line is the number of the block's first line.
	Line int
	// Language is what stands behind the opening fence.
	Language string
	// Text is the block without its indentation. It ends with a line feed.
	Text string
}

// Outputs are what the commands of a session print, one text a command.
func (b Block) Outputs() []string {
	texts := strings.Split("\n"+b.Text, "\n$ ")[1:]
	for i, text := range texts {
		_, texts[i], _ = strings.Cut(text, "\n")
		if i < len(texts)-1 {
			texts[i] += "\n"
		}
	}
	return texts
}

// document is the code of a document.
type document struct{ blocks, spans []Block }

// Of returns the blocks of a page that have a language, in their order. An empty page stands for
// README.md and all of docs, an empty language for each.
func Of(page, language string) ([]Block, error) {
	names := []string{page}
	if page == "" {
		var err error
		if names, err = all(); err != nil {
			return nil, err
		}
	}
	var found []Block
	err := each(names, func(p *document) {
		for _, b := range p.blocks {
			if language == "" || b.Language == language {
				found = append(found, b)
			}
		}
	})
	return found, err
}

// Spans returns the code within sentences and tables, each span as a block without a language whose
// text is one line without a line feed.
func Spans() ([]Block, error) {
	names, err := all()
	if err != nil {
		return nil, err
	}
	var found []Block
	err = each(names, func(p *document) { found = append(found, p.spans...) })
	return found, err
}

// each reads pages.
func each(names []string, f func(*document)) error {
	dir, err := root()
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		f(parse(name, string(text)))
	}
	return nil
}

// root is the repository's folder: the first one above that has docs.
func root() (string, error) {
	for dir := "."; len(dir) < 100; dir = filepath.Join("..", dir) {
		if _, err := os.Stat(filepath.Join(dir, "docs", "README.md")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("pages: the repository is not among the folders above")
}

// all are the paths of README.md and of the pages of docs.
func all() ([]string, error) {
	dir, err := root()
	if err != nil {
		return nil, err
	}
	names := []string{"README.md"}
	err = fs.WalkDir(os.DirFS(dir), "docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			names = append(names, path)
		}
		return err
	})
	return names, err
}

var (
	fence = regexp.MustCompile("^( *)```(.*)$")
	span  = regexp.MustCompile("`([^`]+)`")
	// oneLine joins the lines of a span, and takes away what a table needs.
	oneLine = strings.NewReplacer("\n", " ", `\|`, "|")
)

// parse reads Markdown as far as the pages use it.
func parse(name, text string) *document {
	p, section := &document{}, ""
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		end := i + 1
		opened := fence.FindStringSubmatch(lines[i])
		switch {
		case opened != nil:
			for end < len(lines) && strings.TrimSpace(lines[end]) != "```" {
				end++
			}
			p.blocks = append(p.blocks, Block{name, section, i + 2, opened[2], unindented(lines[i+1:min(end, len(lines))], opened[1])})
			end++ // the closing fence
		case strings.HasPrefix(lines[i], "    "): // a paragraph would have read it, had it been one's line
			for end < len(lines) && (lines[end] == "" || strings.HasPrefix(lines[end], "    ")) {
				end++
			}
			code := strings.Split(strings.TrimRight(strings.Join(lines[i:end], "\n"), "\n"), "\n")
			indent := lines[i][:len(lines[i])-len(strings.TrimLeft(lines[i], " "))]
			p.blocks = append(p.blocks, Block{name, section, i + 1, Shell, unindented(code, indent)})
		case lines[i] != "":
			if heading, ok := strings.CutPrefix(lines[i], "## "); ok {
				section = heading
			}
			row := strings.HasPrefix(lines[i], "|")
			for !row && end < len(lines) && lines[end] != "" && fence.FindString(lines[end]) == "" {
				end++
			}
			text := strings.Join(lines[i:end], "\n")
			for _, m := range span.FindAllStringSubmatchIndex(text, -1) {
				line := i + 1 + strings.Count(text[:m[2]], "\n")
				p.spans = append(p.spans, Block{name, section, line, "", oneLine.Replace(text[m[2]:m[3]])})
			}
		}
		i = end - 1
	}
	return p
}

func unindented(lines []string, indent string) string {
	lines = slices.Clone(lines)
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], indent)
	}
	return strings.Join(lines, "\n") + "\n"
}
