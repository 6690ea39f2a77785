package listing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/models"
)

// found reads every page of a search, and says on how many of them it stopped before the page was
// full.
func (b *jobsBundle) found(f listing.JobFilter, limit int) (ids []string, stops int) {
	b.t.Helper()
	cursor := ""
	for {
		page, err := b.listing.FindJobs(b.t.Context(), f, limit, cursor)
		require.NoError(b.t, err)
		for _, j := range page.Jobs {
			ids = append(ids, j.ID)
		}
		if page.Searched != nil {
			stops++
			assert.NotEmpty(b.t, page.Next, "a search that stopped can go on")
			assert.WithinDuration(b.t, time.Now(), *page.Searched, time.Hour)
		}
		if page.Next == "" {
			return ids, stops
		}
		cursor = page.Next
	}
}

// A search that reads a bounded number of rows for a page finds what the list finds, whatever the
// filter.
func TestBoundedSearchFindsTheSame(t *testing.T) {
	t.Parallel()
	b := setupJobs(t)
	for i := range 60 {
		org, kind := []string{"o", "p", "q"}[i%3], []string{"mail", "sms"}[i%2]
		id := b.enqueue(store.NewJob{
			OrgID: org, Type: kind, Payload: fmt.Appendf(nil, `{"n": %d}`, i), IdempotencyKey: fmt.Sprintf("k-%d", i/2),
			Links: fmt.Appendf(nil, `[{"kind": %q, "id": "%d"}]`, []string{"order", "user"}[i%2], i%7),
		})
		switch i % 5 {
		case 0:
			b.fail(id, []models.ErrorCode{models.CodeTimeout, models.CodeNotFound}[i%2], time.Duration(i)*time.Second)
		case 1:
			b.exec(`UPDATE daybook.jobs SET state = 'completed', finished_at = clock_timestamp() WHERE id = $1`, id)
		}
	}
	filters := map[string]listing.JobFilter{
		"all": {}, "an organization": {OrgID: "p"}, "a type": {Type: "sms"}, "open": {State: models.JobPending},
		"open of a type": {State: models.JobPending, Type: "sms"},
		"failed":         {State: models.JobFailed}, "failed of an organization": {State: models.JobFailed, OrgID: "q"},
		"failed with a code":           {State: models.JobFailed, Code: models.CodeNotFound},
		"failed of a type with a code": {State: models.JobFailed, Code: models.CodeNotFound, Type: "sms"},
		"completed of a type":          {State: models.JobCompleted, Type: "sms"},
		"a kind of link":               {Link: models.JobLink{Kind: "user"}},
		"a linked id":                  {Link: models.JobLink{ID: "3"}},
		"a link":                       {Link: models.JobLink{Kind: "user", ID: "3"}},
		"a key":                        {Key: "k-3"}, "since": {Type: "sms", Since: time.Now().Add(-time.Hour)},
		"until": {Type: "sms", Until: time.Now().Add(time.Hour)}, "none": {Type: "none"},
		"failed since": {State: models.JobFailed, Type: "sms", Since: time.Now().Add(-30 * time.Second)},
	}
	for name, f := range filters {
		want, _ := b.all(f, 1000)
		for _, scan := range []int{4, 20, 1000} {
			b.listing.SetScan(scan)
			got, stops := b.found(f, 3)
			assert.Equal(t, want, got, "%s, reading %d rows a page", name, scan)
			assert.True(t, scan < 1000 || stops == 0, "%s: nothing is left out unsaid, and nothing said without need", name)
		}
	}
	b.listing.SetScan(10)
	_, stops := b.found(listing.JobFilter{Type: "none"}, 3)
	assert.Equal(t, 6, stops, "it says where it stopped")
}

func TestBoundedSearchForAccountingJobs(t *testing.T) {
	t.Parallel()
	b := setupJobs(t)
	for _, org := range []string{"o", "p"} {
		fixture.Organization(t, b.Pool, org)
		fixture.ManyReady(t, b.Pool, org, "inv-", 20)
	}
	b.exec(`
UPDATE daybook.accounting_work_queue SET state = 'failed', finished_at = clock_timestamp(), updated_at = clock_timestamp(), last_error = 'e',
       last_error_code = CASE org_id WHEN 'o' THEN 'UNBALANCED' ELSE 'NO_MATCHING_RULE' END
 WHERE right(document_id, 1) IN ('1', '2', '3')`)
	for name, c := range map[string]struct {
		f        listing.AccountingJobFilter
		document string
		want     int
	}{
		"all": {want: 40}, "an organization": {f: listing.AccountingJobFilter{OrgID: "p"}, want: 20},
		"open":   {f: listing.AccountingJobFilter{State: models.JobPending}, want: 28},
		"failed": {f: listing.AccountingJobFilter{State: models.JobFailed}, want: 12},
		"a code": {f: listing.AccountingJobFilter{Code: models.CodeUnbalanced}, want: 6},
		"failed with a code": {
			f:    listing.AccountingJobFilter{State: models.JobFailed, Code: models.CodeUnbalanced},
			want: 6,
		},
		"since":                         {f: listing.AccountingJobFilter{Since: time.Now().Add(-time.Hour)}, want: 40},
		"a document":                    {document: "inv-7", want: 2},
		"a document of an organization": {f: listing.AccountingJobFilter{OrgID: "o"}, document: "inv-7", want: 1},
		"no document":                   {document: "none"},
	} {
		for _, scan := range []int{4, 1000} {
			b.listing.SetScan(scan)
			seen := map[string]bool{}
			cursor := ""
			for range 100 {
				c.f.Limit = 3
				page, err := b.listing.FindAccountingJobs(t.Context(), c.f, c.document, cursor)
				require.NoError(t, err)
				for _, j := range page.Jobs {
					assert.False(t, seen[j.ID], "%s: a job is on two pages", name)
					seen[j.ID] = true
				}
				if cursor = page.Next; cursor == "" {
					break
				}
			}
			assert.Len(t, seen, c.want, "%s, reading %d rows a page", name, scan)
		}
	}
}
