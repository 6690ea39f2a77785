package cli

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What takes long says that it goes on: on the error stream, never beside JSON.
func TestWaitingIsSaid(t *testing.T) {
	t.Parallel()
	for _, json := range []bool{false, true} {
		reader, writer := io.Pipe()
		a := &App{Stdout: io.Discard, Stderr: writer, JSON: json, waitsEvery: time.Millisecond}
		end := a.Waiting("checking")
		if json {
			end()
			require.NoError(t, writer.Close())
			said, err := io.ReadAll(reader)
			require.NoError(t, err)
			assert.Empty(t, said)
			continue
		}
		line := make([]byte, 64)
		n, err := reader.Read(line)
		require.NoError(t, err)
		assert.Regexp(t, `^checking, for `, string(line[:n]))
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			_, _ = io.Copy(io.Discard, reader)
		}()
		end()
		require.NoError(t, writer.Close())
		<-drained
	}
}

// Where the error stream is no terminal, a bar is lines.
func TestProgressElsewhereIsLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	bar := (&App{Stderr: &out, waitsEvery: 1}).NewProgress("importing", 2000)
	bar.Set(1000)
	bar.End()
	assert.Equal(t, "importing: 1,000 of 2,000\n", out.String())
}
