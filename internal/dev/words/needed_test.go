package words

import (
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// needed returns strings in lower case of which each text that matches the pattern has at least
// one. To search a line for them costs a hundredth of matching a pattern under the race detector.
func needed(t *testing.T, pattern string) []string {
	t.Helper()
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	require.NoError(t, err)
	parts := neededBy(parsed)
	require.NotEmpty(t, parts, "%s: every pattern has a part that is always there", pattern)
	return parts
}

// neededBy is nil when nothing in particular is needed.
func neededBy(r *syntax.Regexp) []string {
	switch r.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(r.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return neededBy(r.Sub[0])
	case syntax.OpConcat:
		var best []string
		for _, sub := range r.Sub {
			if parts := neededBy(sub); parts != nil && (best == nil || shortest(parts) > shortest(best)) {
				best = parts
			}
		}
		return best
	case syntax.OpAlternate:
		var every []string
		for _, sub := range r.Sub {
			parts := neededBy(sub)
			if parts == nil {
				return nil
			}
			every = append(every, parts...)
		}
		return every
	default:
		return nil
	}
}

// shortest is the length of the shortest part, which is found most often.
func shortest(parts []string) int {
	return len(slices.MinFunc(parts, func(a, b string) int { return len(a) - len(b) }))
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

func TestWhatAPatternNeeds(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string][]string{
		`(?i)settl(e|ed)`:                      {"settl"},
		`(?i)\b(some|no)body\b|\bwho(so)?ever`: {"body", "ever"},
		`[a-z]Flows?\b`:                        {"flow"},
		`\b(take|took) (it |them )?over\b`:     {"over"},
		`_AWAY|[a-z]Away`:                      {"_away", "away"},
	} {
		assert.Equal(t, want, needed(t, pattern), pattern)
	}
	assert.Nil(t, neededBy(must(syntax.Parse(`a|[b-y]*`, syntax.Perl))))
}

func must(r *syntax.Regexp, err error) *syntax.Regexp {
	if err != nil {
		panic(err)
	}
	return r
}
