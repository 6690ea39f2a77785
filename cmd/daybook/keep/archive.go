package keep

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/moving/archive"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// errDamagedArchive: files of the archive are not as they are on record.
var errDamagedArchive = failure.New(failure.Failure,
	"files of the archive are damaged: bring them back from a copy of the bucket")

func archiveCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "archive",
		Short: "Move finished jobs and old attempts to blob storage, and bring them back",
	}
	command.AddCommand(archiveMoveCommand(a), archiveListCommand(a), archiveVerifyCommand(a), archiveRestoreCommand(a))
	return command
}

// archiveFlag adds the flag that says where the archive is.
func archiveFlag(c *cobra.Command, address *string) {
	c.Flags().StringVar(address, "archive", "",
		"a directory, or the URL of a bucket, such as file:///var/lib/daybook/archive (default $DAYBOOK_ARCHIVE)")
}

// withArchive opens the archive and the database.
func withArchive(ctx context.Context, a *cli.App, address string, f func(*archive.Archive, *cli.Database) error) error {
	if address == "" {
		address = os.Getenv("DAYBOOK_ARCHIVE")
	}
	if address == "" {
		return cli.Usagef("say where the archive is: --archive, or DAYBOOK_ARCHIVE")
	}
	files, err := archive.Open(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = files.Close() }()
	db, err := a.Open(ctx, 1)
	if err != nil {
		return err
	}
	defer db.Close()
	return f(files, db)
}

// MovedRows is what was moved to the archive, for programs.
type MovedRows struct {
	Before time.Time        `json:"before"`
	Files  int64            `json:"files"`
	Counts map[string]int64 `json:"counts"`
}

func archiveMoveCommand(a *cli.App) *cobra.Command {
	var address, before, org string
	var kinds []string
	var batch int
	command := &cobra.Command{
		Use:   "move --before TIME [--org ORG] [--kind jobs,attempts]",
		Short: "Move finished jobs and old attempts from the database to the archive",
		Long: "Moves background jobs that were completed or cancelled before a time, with their attempts, links and receipts, and attempts at accounting jobs that\n" +
			"are completed or cancelled, to compressed files of JSON lines. A file is written, read again and compared before the transaction commits that\n" +
			"removes its rows. The ledger, dead letters, and what waits or runs stay. Completed tasks are moved by " +
			"`daybook tasks archive`.",
		Example: "  daybook archive move --before 720h --archive /var/lib/daybook/archive",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			now := time.Now()
			at, err := cli.ParseMoment("--before", before, now)
			switch {
			case err != nil:
				return err
			case at.IsZero() || at.After(now):
				return cli.Usagef("--before: want a duration back from now such as 720h, or a time in the past such as " +
					"2026-01-31T09:00:00Z")
			case batch < 1 || batch > 100_000:
				return cli.Usagef("--batch must be from 1 to 100000")
			}
			for _, kind := range kinds {
				if !slices.Contains(archive.Kinds(), archive.Kind(kind)) {
					return cli.Usagef("--kind %q: want jobs, attempts or both", kind)
				}
			}
			return withArchive(c.Context(), a, address, func(files *archive.Archive, db *cli.Database) error {
				at, ended := db.Moment(c.Context(), "--before", before)
				done := MovedRows{Before: at, Counts: map[string]int64{}}
				for _, kind := range kinds {
					var last archive.Batch
					for ended == nil {
						last, ended = files.Move(c.Context(), db.Pool, archive.Kind(kind),
							store.Retention{OrgID: org, Before: at, Batch: batch}, last)
						if ended != nil || last.Rows == 0 {
							break
						}
						done.Files++
						for table, n := range last.Counts {
							done.Counts[table] += n
						}
					}
				}
				return a.EmitDone(ended, done.Files == 0, done, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "moved to %s: %s\n", phrase.Plural(done.Files, "file", "files"),
						countsText(done.Counts))
					return err
				})
			})
		},
	}
	flags := command.Flags()
	archiveFlag(command, &address)
	flags.StringVar(&before, "before", "",
		"what ended before: a duration back from now such as 720h, or a time as RFC 3339")
	flags.StringVar(&org, "org", "", "only of this organization")
	flags.StringSliceVar(&kinds, "kind", []string{string(archive.Jobs), string(archive.Attempts)},
		"jobs, attempts or both")
	flags.IntVar(&batch, "batch", 1000,
		"how many jobs, or attempts, are moved at once, into one file; they are held in memory")
	_ = command.MarkFlagRequired("before")
	return command
}

// countsText are counts by table.
func countsText(counts map[string]int64) string {
	var parts []string
	for table, n := range counts {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", table, n))
		}
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// ArchivePage is a page of the files of the archive.
type ArchivePage struct {
	Files []store.Archived `json:"files"`
	Next  string           `json:"next_cursor,omitempty"`
}

func archiveListCommand(a *cli.App) *cobra.Command {
	var org string
	var page cli.PageFlags
	command := &cobra.Command{
		Use:   "list [--org ORG]",
		Short: "List the files of the archive that are on record, the first one first",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var after store.ArchivePlace
			if err := page.Read(&after); err != nil {
				return err
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			files, err := store.ArchivesAfter(c.Context(), db.Pool, org, after, page.Limit+1)
			if err != nil {
				return err
			}
			var shown ArchivePage
			shown.Files, shown.Next = cursor.Page(page.Limit, files,
				func(f store.Archived) any { return store.ArchivePlace{At: f.ArchivedAt, Key: f.Key} })
			return a.Emit(shown, func(w io.Writer) error {
				defer a.More(shown.Next)
				t := cli.NewTable("KEY", "ROWS", "ENDED", "UNTIL", "ARCHIVED", "STATE")
				for i := range shown.Files {
					f := &shown.Files[i]
					state := ""
					switch {
					case f.ErasedAt != nil:
						state = "erased"
					case f.RestoredAt != nil:
						state = "restored"
					}
					t.Add(f.Key, countsText(f.Counts), f.FirstAt.Format(time.DateOnly), f.LastAt.Format(time.DateOnly),
						cli.FormatTime(f.ArchivedAt), state)
				}
				return a.Print(w, t)
			})
		},
	}
	command.Flags().StringVar(&org, "org", "", "those that hold something of this organization")
	page.Add(command, "files", 100)
	return command
}

func archiveVerifyCommand(a *cli.App) *cobra.Command {
	var address string
	command := &cobra.Command{
		Use:   "verify",
		Short: "Read all files of the archive, and compare them with what is on record",
		Long: "Compares size, SHA-256, lines and rows of each file with what is on record, and lists files that are not: a transaction that did not commit\n" +
			"wrote them, and what is in them is in the database. It fails when a file is damaged or is not there.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withArchive(c.Context(), a, address, func(files *archive.Archive, db *cli.Database) error {
				v, err := files.Verify(c.Context(), db.Pool)
				if err != nil {
					return err
				}
				err = a.Emit(v, func(w io.Writer) error {
					for _, text := range v.Damaged {
						if _, err := fmt.Fprintln(w, "damaged:", text); err != nil {
							return err
						}
					}
					for _, key := range v.Unrecorded {
						if _, err := fmt.Fprintln(w, "not on record:", key); err != nil {
							return err
						}
					}
					_, err := fmt.Fprintf(w, "%s with %s, %d damaged, %d not on record\n",
						phrase.Plural(int64(v.Files), "file", "files"), phrase.Plural(v.Lines, "line", "lines"), len(v.Damaged),
						len(v.Unrecorded))
					return err
				})
				if err == nil && len(v.Damaged) > 0 {
					return errDamagedArchive
				}
				return err
			})
		},
	}
	archiveFlag(command, &address)
	return command
}

// RestoredFiles is what was brought back, for programs.
type RestoredFiles struct {
	Files   int64            `json:"files"`
	Rows    map[string]int64 `json:"rows"`
	Present int64            `json:"present"`
}

func archiveRestoreCommand(a *cli.App) *cobra.Command {
	var address, org string
	var all bool
	command := &cobra.Command{
		Use:   "restore (KEY... | --all) [--org ORG]",
		Short: "Bring rows back from the archive as they were",
		Long: "Brings back the rows of files that are on record, as they were: states, attempts, links and receipts. Each file is one transaction. A job that is\n" +
			"there already, or whose idempotency key another job has by now, is left out, so that twice is as once. The " +
			"files stay.",
		RunE: func(c *cobra.Command, keys []string) error {
			if all == (len(keys) > 0) {
				return cli.Usagef("give either the keys of files, as `daybook archive list` shows them, or --all")
			}
			return withArchive(c.Context(), a, address, func(files *archive.Archive, db *cli.Database) error {
				known, err := store.Archives(c.Context(), db.Pool, org)
				if err != nil {
					return err
				}
				for _, key := range keys {
					if !slices.ContainsFunc(known, func(f store.Archived) bool { return f.Key == key }) {
						return cli.Tagged(errNoArchived, "no file %s is on record: `daybook archive list` shows which there are",
							key)
					}
				}
				done := RestoredFiles{Rows: map[string]int64{}}
				var ended error
				for i := range known {
					if !all && !slices.Contains(keys, known[i].Key) {
						continue
					}
					r, err := files.Restore(c.Context(), db.Pool, known[i], org)
					if ended = err; err != nil {
						break
					}
					done.Files++
					done.Present += r.Present
					for table, n := range r.Rows {
						done.Rows[table] += n
					}
				}
				return a.EmitDone(ended, done.Files == 0, done, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "brought back from %s: %s; left out, because they are there or their key is in use: %d\n",
						phrase.Plural(done.Files, "file", "files"), countsText(done.Rows), done.Present)
					return err
				})
			})
		},
	}
	archiveFlag(command, &address)
	command.Flags().BoolVar(&all, "all", false, "every file that is on record")
	command.Flags().StringVar(&org, "org", "", "only rows of this organization")
	return command
}
