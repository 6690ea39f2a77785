package httpapi_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/answers"
)

// Amounts have one form in all answers: xMinor is a string of minor units, and x the same as a
// decimal number. Requests have xMinor alone.
func TestAmountsHaveOneForm(t *testing.T) {
	t.Parallel()
	s := setup(t).spec
	answered, all := s.objects("responses"), s.objects("paths")
	amounts := map[string]bool{}
	for _, properties := range all {
		for name := range properties {
			if of, ok := strings.CutSuffix(name, "Minor"); ok {
				amounts[of] = true
			}
		}
	}
	assert.Greater(t, len(amounts), 20)
	for place, properties := range all {
		for name, property := range properties {
			at := place + " " + name
			assert.NotContains(t, []string{"minor", "decimal"}, name, at)
			pattern, many := patternOf(property)
			of, isMinor := strings.CutSuffix(name, "Minor")
			if isMinor {
				assert.Equal(t, answers.MinorPattern, pattern, at)
			}
			switch beside, besideMany := patternOf(properties[of]); {
			case isMinor && answered[place] != nil:
				assert.Equal(t, answers.DecimalPattern, beside, "%s: %s is beside it, as a decimal number", at, of)
				assert.Equal(t, many, besideMany, at)
			case pattern == answers.DecimalPattern:
				assert.Contains(t, properties, name+"Minor", at)
			case amounts[name] && !many:
				assert.Fail(t, "an amount in another form", at)
			}
		}
	}
}

// objects are the properties of each object that is in a part of the operations, by its place.
func (s *spec) objects(part string) map[string]map[string]any {
	found, followed := map[string]map[string]any{}, map[string]bool{}
	var follow func(v any, place string)
	follow = func(v any, place string) {
		walk(v, place, func(place string, v map[string]any) {
			if properties, ok := v["properties"].(map[string]any); ok {
				found[place] = properties
			}
			if ref, ok := v["$ref"].(string); ok && !followed[ref] {
				followed[ref] = true
				schemas := s.document["components"].(map[string]any)["schemas"].(map[string]any)
				follow(schemas[strings.TrimPrefix(ref, "#/components/schemas/")], ref)
			}
		})
	}
	for _, r := range s.routes {
		place := "#/paths/" + r.method + " " + r.path
		if part == "paths" {
			follow(r.operation, place)
		} else {
			follow(r.operation[part], place+"/"+part)
		}
	}
	return found
}

// patternOf is the pattern of a property's texts, and whether it is a list.
func patternOf(property any) (pattern string, many bool) {
	p, _ := property.(map[string]any)
	if items, ok := p["items"].(map[string]any); ok {
		p, many = items, true
	}
	pattern, _ = p["pattern"].(string)
	return pattern, many
}
