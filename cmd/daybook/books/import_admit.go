package books

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
)

// admission decides which documents of an import are written, whatever format they come in. One
// goroutine uses it.
type admission struct {
	pool *pgxpool.Pool
	// rules are the active rule sets by organization, nil for none; compiled are those by their hash.
	rules, compiled map[string]*posting.RuleSet
	// seen has each document that was admitted, files the names of where they come from.
	seen  map[documentSum]seenDocument
	files []string
	seed  maphash.Seed
	// remedy says what to do about two documents of one id.
	remedy string
}

// documentSum stands for a document's organization and id.
type documentSum [16]byte

// seenDocument says where a document is, and what it is.
type seenDocument struct {
	file, line uint32
	content    uint64
}

func newAdmission(pool *pgxpool.Pool) *admission {
	return &admission{
		pool: pool, rules: map[string]*posting.RuleSet{}, compiled: map[string]*posting.RuleSet{},
		seen: map[documentSum]seenDocument{},
		seed: maphash.MakeSeed(), remedy: "give each document an id of its own",
	}
}

// errSameDocument says that a document is there twice in an import, and the same both times.
var errSameDocument = failure.New(failure.DocumentRefused, "the same document")

// admit returns why a document is not written: its amounts cannot be posted, or the import has its
// id already. The first document of an id counts, so that none is replaced by another one of the
// same import; errSameDocument says that they do not differ.
func (a *admission) admit(ctx context.Context, item *ImportItem) error {
	rules, err := a.rulesOf(ctx, item.Document.OrgID)
	if err != nil {
		return err
	}
	if err := posting.Check(&item.Document, rules); err != nil {
		return fmt.Errorf("%w: %w", importer.ErrInvalid, err)
	}
	if err := item.encode(); err != nil {
		return fmt.Errorf("%w: %w", importer.ErrInvalid, err)
	}
	sum := sha256.Sum256([]byte(item.Document.OrgID + "\x00" + item.Document.ID))
	key, here := documentSum(sum[:16]), seenDocument{line: uint32(item.line), content: a.sumOf(item)}
	first, ok := a.seen[key]
	switch {
	case !ok:
		here.file = a.fileOf(item.File)
		a.seen[key] = here
		return nil
	case first.content == here.content:
		return fmt.Errorf("%w as in %s", errSameDocument, a.place(first))
	}
	return fmt.Errorf("%w: it has the id of %s (%s) and other content: the first one counts; %s", importer.ErrInvalid,
		a.place(first), item.Document.ID, a.remedy)
}

// encode fills in the text of the document's content.
func (i *ImportItem) encode() error {
	if i.text != "" {
		return nil
	}
	text, err := json.Marshal(i.Document.Content)
	i.text = string(text)
	return err
}

// sumOf stands for what the document is, but for its organization and id.
func (a *admission) sumOf(item *ImportItem) uint64 {
	d := &item.Document
	var sum maphash.Hash
	sum.SetSeed(a.seed)
	for _, part := range []string{
		string(d.Type), string(d.Direction), d.Currency, d.IssueDate.String(), store.Value(d.ValueDate).String(), item.text,
	} {
		_, _ = sum.WriteString(part)
		_ = sum.WriteByte(0)
	}
	return sum.Sum64()
}

// fileOf is the number of a file, whose documents come one after the other.
func (a *admission) fileOf(name string) uint32 {
	if n := len(a.files); n == 0 || a.files[n-1] != name {
		a.files = append(a.files, name)
	}
	return uint32(len(a.files) - 1)
}

func (a *admission) place(s seenDocument) string {
	if s.line == 0 {
		return a.files[s.file]
	}
	return fmt.Sprintf("%s: line %d", a.files[s.file], s.line)
}

// rulesOf reads the rules that an organization posts by, once; nil: it has none that can be used.
func (a *admission) rulesOf(ctx context.Context, org string) (*posting.RuleSet, error) {
	if rules, ok := a.rules[org]; ok {
		return rules, nil
	}
	set, err := ledgerdb.ActiveRuleSet(ctx, a.pool, org)
	if err != nil && !errors.Is(err, ledgerdb.ErrNoRuleSet) {
		return nil, err
	}
	rules, ok := a.compiled[set.SHA256]
	if !ok && err == nil {
		// Rules that cannot be compiled post nothing, which their documents' jobs say.
		rules, _ = posting.Compile([]byte(set.Source))
		a.compiled[set.SHA256] = rules
	}
	a.rules[org] = rules
	return rules, nil
}
