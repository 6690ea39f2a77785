package handlers

import (
	"context"
	"errors"
	"time"

	"github.com/daybook-dev/daybook/internal/moving/archive"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// move moves one kind of rows to the archive, file by file.
func (h *CleanupHandler) move(ctx context.Context, c *call[Cleanup], s cleanupStep, r store.Retention,
	total *CleanupResult,
) (err error) {
	files, err := archive.Open(ctx, h.config.Archive)
	if err != nil {
		return fail(models.CodeNetworkError, "the archive cannot be opened: check %sARCHIVE: %s", environmentPrefix,
			clip(err.Error()))
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	var last archive.Batch
	for {
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < cleanupReserve {
			total.More = true
			return nil
		}
		last, err = files.Move(ctx, h.pool, archive.Kind(s.Name), r, last)
		if refused, ok := errors.AsType[*archive.WriteError](err); ok {
			return fail(models.CodeNetworkError, "%s", clip(withoutSecrets(refused.Error())))
		}
		if err != nil {
			return store.Unavailable(ctx, err)
		}
		if last.Rows == 0 {
			return nil
		}
		total.Files++
		total.Jobs += last.Counts["jobs"]
		total.Attempts += last.Counts["attempts"]
		total.Receipts += last.Counts["receipts"]
		if err := c.progress(ctx, total); err != nil {
			return err
		}
	}
}
