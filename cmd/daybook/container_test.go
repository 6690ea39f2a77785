package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// instructions are those of a Dockerfile, stage by stage: each with its arguments, in one line.
func instructions(t *testing.T) (stages []map[string][]string) {
	t.Helper()
	file, err := os.ReadFile("../../Dockerfile")
	require.NoError(t, err)
	text := ""
	for line := range strings.Lines(string(file)) {
		if !strings.HasPrefix(line, "#") {
			text += line
		}
	}
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		name, arguments, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "":
			continue
		case "FROM":
			stages = append(stages, map[string][]string{})
		}
		require.NotEmpty(t, stages, "%s comes before FROM", name)
		stage := stages[len(stages)-1]
		stage[name] = append(stage[name], strings.Join(strings.Fields(arguments), " "))
	}
	return stages
}

// TestImage holds the image to what docs/docker.md says of it, as no container engine takes part.
func TestImage(t *testing.T) {
	t.Parallel()
	stages := instructions(t)
	require.Len(t, stages, 2)
	for _, stage := range stages {
		assert.NotContains(t, stage, "ADD", "COPY fetches nothing and unpacks nothing")
		assert.Regexp(t, `^[\w-]+(\.\w+)+/[\w./-]+:[\w.-]+ AS \w+$`, stage["FROM"][0], "a base has a tag, and its registry, which podman wants to be told")
		assert.NotContains(t, stage["FROM"][0], ":latest")
	}
	image := stages[1]
	for _, file := range []string{"LICENSE", "THIRD_PARTY_LICENSES"} {
		assert.Regexp(t, file+` .*/usr/share/doc/daybook/`, strings.Join(image["COPY"], " "), "the image has the licences of what it holds")
	}
	assert.Equal(t, []string{"nonroot:nonroot"}, image["USER"])
	assert.NotContains(t, image, "RUN", "there is no shell")
	for _, label := range []string{"title", "description", "licenses", "source", "version", "revision"} {
		assert.Contains(t, image["LABEL"][0], "org.opencontainers.image."+label+"=")
	}

	var entry, health []string
	require.NoError(t, json.Unmarshal([]byte(image["ENTRYPOINT"][0]), &entry))
	_, command, found := strings.Cut(image["HEALTHCHECK"][0], " CMD ")
	require.True(t, found)
	require.NoError(t, json.Unmarshal([]byte(command), &health))
	require.Equal(t, entry, health[:1], "there is no other program")
	b := setup(t)
	assert.Zero(t, b.run(health[1:]...).exit)
	assert.NotZero(t, call(t.Context(), "", append([]string{"--database-url", "postgres://127.0.0.1:1/none"}, health[1:]...)...).exit)
}
