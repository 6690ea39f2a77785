package pages

import (
	"regexp"
	"slices"
	"strings"
)

// Command is a command line that a page shows.
type Command struct {
	Page string
	Line int
	// Env are the variables that stand before the program, as "NAME=value".
	Env []string
	// Words are the program and its arguments, as a shell would hand them on; what the shell itself
	// would fill in stays as it is. Without them the line sets variables.
	Words []string
	// Whole is true in a block, whose lines are to be typed; a span of code in a sentence may leave
	// arguments out.
	Whole bool
}

// String is the command as the page has it, but for its quotes.
func (c Command) String() string { return strings.Join(slices.Concat(c.Env, c.Words), " ") }

// Commands returns the command lines of README.md and docs, and of other files that are named, that
// call a program; those of blocks, whichever they call, when program is empty.
func Commands(program string, others ...string) ([]Command, error) {
	names, err := all()
	if err != nil {
		return nil, err
	}
	var found []Command
	err = each(append(names, others...), func(p *document) {
		for _, c := range p.commands() {
			if program == "" && c.Whole || program != "" && len(c.Words) > 0 && c.Words[0] == program {
				found = append(found, c)
			}
		}
	})
	return found, err
}

var (
	prompt = regexp.MustCompile(`(?m)^\$ `)
	output = regexp.MustCompile(`(?m)^[^$\n].*$|^\$[^ ].*$`)
	// setting is a variable before a program, or by itself.
	setting = regexp.MustCompile(`^[A-Z][A-Z0-9_]*=`)
)

func (p *document) commands() (found []Command) {
	for _, b := range p.spans {
		found = append(found, lines(b.Page, b.Line, b.Text, false)...)
	}
	for _, b := range p.blocks {
		switch b.Language {
		case Console:
			text := output.ReplaceAllString(b.Text, "") // its lines stay, and so do the numbers of others
			found = append(found, lines(b.Page, b.Line, prompt.ReplaceAllString(text, ""), true)...)
		case Shell:
			found = append(found, lines(b.Page, b.Line, b.Text, true)...)
		}
	}
	return found
}

// Words are the words of one command line.
func Words(line string) []string {
	for _, c := range lines("", 0, line, true) {
		return c.Words
	}
	return nil
}

// lines splits a text as a shell does, into commands and their words.
func lines(page string, number int, text string, whole bool) (found []Command) {
	var words []string
	var word strings.Builder
	within, began := false, 0
	endWord := func() {
		if within {
			words = append(words, word.String())
			word.Reset()
			within = false
		}
	}
	endCommand := func() {
		endWord()
		if words = withoutFiles(words); len(words) > 0 {
			n := 0
			if words[0] == "export" {
				words = words[1:]
			}
			for n < len(words) && setting.MatchString(words[n]) {
				n++
			}
			found = append(found, Command{page, began, words[:n], words[n:], whole})
		}
		words = nil
	}
	for rest := text; rest != ""; {
		c := rest[0]
		if len(words) == 0 && !within {
			began = number + strings.Count(text[:len(text)-len(rest)], "\n")
		}
		size := 1
		switch {
		case strings.HasPrefix(rest, "\\\n"):
			size = 2
			endWord()
		case c == '\'' || c == '"':
			within = true
			size = 2 + max(0, strings.IndexByte(rest[1:]+string(c), c))
			word.WriteString(rest[1:min(size-1, len(rest))])
			size = min(size, len(rest))
		case c == '#' && !within:
			size = len(rest)
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				size = end
			}
		case c == '\n' || c == '|' || c == ';' || strings.HasPrefix(rest, "&&"):
			endCommand()
			if c == '&' {
				size = 2
			}
		case c == ' ':
			endWord()
		default:
			within = true
			word.WriteByte(c)
		}
		rest = rest[size:]
	}
	endCommand()
	return found
}

// withoutFiles leaves out where a command's output goes.
func withoutFiles(words []string) []string {
	if i := slices.Index(words, ">"); i >= 0 {
		return slices.Delete(slices.Clone(words), i, min(i+2, len(words)))
	}
	return words
}
