package dev

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/cmd/daybook/books"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/models"
)

// The published GOBL examples: the module, its version, and the hash by which the Go checksum
// database knows it.
const (
	goblModule = "github.com/invopop/gobl@v0.504.0"
	goblSum    = "h1:RLmZmeAk9RL4rkMUc7xQfC70/RGiBeekRwVgMsMthQA="
	// goblTimeout bounds the download; without a network the demonstration goes on with its own
	// documents.
	goblTimeout = 90 * time.Second
)

//go:embed documents.ndjson
var ownDocuments []byte

// findDocuments returns the GOBL examples, or without a network the documents that come with the
// program.
func (d *demo) findDocuments(ctx context.Context) (demoDocuments, error) {
	if d.offline {
		return embeddedDocuments()
	}
	d.Say("Fetching the GOBL examples (%s).", goblModule)
	dir, err := downloadGOBL(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return demoDocuments{}, ctx.Err()
		}
		d.Say("They cannot be downloaded: %v\nUsing the documents that come with the program.", err)
		return embeddedDocuments()
	}
	return goblDocuments(dir)
}

// downloadGOBL returns the directory of the module, which it downloads through the Go module proxy
// unless it is there.
func downloadGOBL(ctx context.Context) (string, error) {
	program, err := exec.LookPath("go")
	if err != nil {
		return "", errors.New("there is no Go toolchain to download them with")
	}
	ctx, cancel := context.WithTimeout(ctx, goblTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, program, "mod", "download", "-json", goblModule)
	// Outside of any module, whose go.mod has no say in this.
	command.Dir = os.TempDir()
	command.Env = append(os.Environ(), "GOTOOLCHAIN=local", "GOFLAGS=", "GOWORK=off")
	output, runErr := command.Output()
	var module struct{ Dir, Sum, Error string }
	if err := json.Unmarshal(output, &module); err != nil {
		return "", errors.Join(runErr, fmt.Errorf("go mod download: %w", err))
	}
	switch {
	case module.Error != "":
		return "", errors.New(module.Error)
	case runErr != nil:
		return "", fmt.Errorf("go mod download: %w", runErr)
	case module.Sum != goblSum:
		return "", fmt.Errorf("module %s is not what was published: its hash is %s, not %s", goblModule, module.Sum,
			goblSum)
	}
	return module.Dir, nil
}

// goblDocuments reads the examples. Each tax country is an organization, which issued the
// documents.
func goblDocuments(dir string) (demoDocuments, error) {
	examples := filepath.Join(dir, "examples")
	files, err := filepath.Glob(filepath.Join(examples, "*", "out", "*.json"))
	if err != nil || len(files) == 0 {
		return demoDocuments{}, errors.Join(err, fmt.Errorf("%s has no examples/*/out/*.json", goblModule))
	}
	docs := demoDocuments{
		source: "gobl",
		// Its stated total leaves out a tax of 0.10.
		mustFail: map[string]models.ErrorCode{"es/out/invoice-es-bypass.json": models.CodeUnbalanced},
	}
	// Several examples share a uuid, so a document is known by its file.
	owner := books.FileOwner{By: books.ByCountry, IdBy: books.ByFile, Direction: string(models.DirectionOut)}
	for _, file := range files {
		name, err := filepath.Rel(examples, file)
		if err != nil {
			return docs, err
		}
		name = filepath.ToSlash(name)
		item, err := books.GOBL.ReadFile(file, name, owner)
		switch {
		case errors.Is(err, importer.ErrNotBookable):
			docs.skipped = append(docs.skipped, books.ImportProblem{Source: name, Reason: err.Error()})
		case err != nil:
			return docs, fmt.Errorf("%s: %w", name, err)
		default:
			docs.items = append(docs.items, item)
		}
	}
	docs.description = fmt.Sprintf("%d GOBL invoices, credit notes and payments (%d of the %d files are orders and the "+
		"like, which cause no booking)",
		len(docs.items), len(docs.skipped), len(files))
	return docs, nil
}

// embeddedDocuments reads the documents that come with the program.
func embeddedDocuments() (demoDocuments, error) {
	docs := demoDocuments{source: "embedded", mustFail: map[string]models.ErrorCode{}}
	for d, err := range importer.NDJSON(bytes.NewReader(ownDocuments)) {
		if err != nil {
			return docs, fmt.Errorf("documents.ndjson: %w", err)
		}
		document := d.Document
		item := books.ImportItem{Source: document.ID, Document: document, File: document.ID}
		if code, ok := document.Content.Attributes["must_fail"]; ok {
			docs.mustFail[document.ID] = models.ErrorCode(code)
		}
		docs.items = append(docs.items, item)
	}
	docs.description = fmt.Sprintf("%d sample documents", len(docs.items))
	return docs, nil
}

// indent moves each line to the right.
func indent(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}
