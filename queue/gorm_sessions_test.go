package queue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/queue"
)

// parcel is a model whose hooks enqueue.
type parcel struct {
	ID     int64 `gorm:"primaryKey"`
	Before bool
	// told is the error of the request; Tells has the hook return it.
	told  error
	Tells bool
}

func (p *parcel) BeforeCreate(tx *gorm.DB) error {
	if !p.Before {
		return nil
	}
	return p.enqueue(tx)
}

func (p *parcel) AfterCreate(tx *gorm.DB) error {
	if p.Before {
		return nil
	}
	return p.enqueue(tx)
}

func (p *parcel) AfterUpdate(tx *gorm.DB) error { return p.enqueue(tx) }

func (p *parcel) AfterDelete(tx *gorm.DB) error { return p.enqueue(tx) }

func (p *parcel) enqueue(tx *gorm.DB) error {
	_, p.told = queue.EnqueueJob(context.WithoutCancel(tx.Statement.Context), queue.GORM(tx), org,
		queue.RawPayload{Type: "ship"}, queue.JobOptions{})
	if p.Tells {
		return p.told
	}
	return nil
}

// parcels is a handle, and the numbers of rows and of jobs.
func parcels(t *testing.T, b *bundle, c gorm.Config) (*gorm.DB, func() [2]int) {
	t.Helper()
	db := b.gormDB(c).WithContext(t.Context())
	require.NoError(t, db.Exec(`CREATE TABLE parcels (id bigserial PRIMARY KEY, before boolean, tells boolean)`).Error)
	return db, func() [2]int {
		var n [2]int
		require.NoError(t, b.Pool.QueryRow(t.Context(),
			`SELECT (SELECT count(*) FROM parcels), (SELECT count(*) FROM daybook.jobs)`).Scan(&n[0], &n[1]))
		return n
	}
}

// TestGORMDryRunEnqueuesNothing: GORM calls the hooks of a model in a dry run as well, in a
// transaction that it begins and commits.
func TestGORMDryRunEnqueuesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]gorm.Config{
		"plain": {}, "prepared": {PrepareStmt: true},
		"of the whole handle": {DryRun: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			whole := c.DryRun
			c.DryRun = false
			db, count := parcels(t, b, c)
			if whole {
				db.Config.DryRun = true
			}
			dry := db.Session(&gorm.Session{DryRun: true})
			for what, run := range map[string]func(p *parcel) *gorm.DB{
				"create":  func(p *parcel) *gorm.DB { return dry.Create(p) },
				"before":  func(p *parcel) *gorm.DB { p.Before = true; return dry.Create(p) },
				"save":    func(p *parcel) *gorm.DB { p.ID = 7; return dry.Save(p) },
				"delete":  func(p *parcel) *gorm.DB { p.ID = 7; return dry.Delete(p) },
				"batches": func(p *parcel) *gorm.DB { return dry.CreateInBatches([]*parcel{p}, 1) },
				"in a transaction": func(p *parcel) (made *gorm.DB) {
					require.NoError(t, db.Transaction(func(tx *gorm.DB) error {
						made = tx.Session(&gorm.Session{DryRun: true}).Create(p)
						return nil
					}))
					return made
				},
			} {
				p := &parcel{Tells: true}
				made := run(p)
				assert.ErrorIs(t, made.Error, queue.ErrDryRun, what)
				assert.ErrorIs(t, p.told, queue.ErrDryRun, what)
			}
			assert.Equal(t, [2]int{}, count())
		})
	}
}

// TestGORMToSQL: the statement that a create would make is printed, in a transaction and outside of
// one, though a hook enqueues.
func TestGORMToSQL(t *testing.T) {
	t.Parallel()
	b := setup(t)
	db, count := parcels(t, b, gorm.Config{})
	toSQL := func(db *gorm.DB) string {
		return db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Create(&parcel{Tells: true}) })
	}
	assert.Contains(t, toSQL(db), `INSERT INTO "parcels"`)
	require.NoError(t, db.Transaction(func(tx *gorm.DB) error {
		assert.Contains(t, toSQL(tx), `INSERT INTO "parcels"`)
		return tx.Create(&parcel{Tells: true}).Error
	}))
	assert.Equal(t, [2]int{1, 1}, count())
}

// TestGORMSessions has a hook enqueue in the sessions that GORM has: there are as many jobs as
// rows.
func TestGORMSessions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config  gorm.Config
		session gorm.Session
		run     func(db *gorm.DB) error
		want    [2]int
		err     error
	}{
		"plain": {run: func(db *gorm.DB) error { return db.Create(&parcel{Tells: true}).Error }, want: [2]int{1, 1}},
		"batches": {
			run:  func(db *gorm.DB) error { return db.CreateInBatches([]*parcel{{}, {}, {}}, 2).Error },
			want: [2]int{3, 3},
		},
		"without a default transaction": {
			session: gorm.Session{SkipDefaultTransaction: true},
			run:     func(db *gorm.DB) error { return db.Create(&parcel{Tells: true}).Error }, want: [2]int{1, 0},
			err: queue.ErrNoTransaction,
		},
		"without hooks": {
			session: gorm.Session{SkipHooks: true},
			run:     func(db *gorm.DB) error { return db.Create(&parcel{Tells: true}).Error }, want: [2]int{1, 0},
		},
		"prepared": {
			config: gorm.Config{PrepareStmt: true},
			run:    func(db *gorm.DB) error { return db.CreateInBatches([]*parcel{{}, {}, {}}, 2).Error }, want: [2]int{3, 3},
		},
		"a nested transaction that is undone": {run: func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error {
				_ = tx.Transaction(func(inner *gorm.DB) error {
					return errors.Join(inner.Create(&parcel{}).Error,
						errRollback)
				})
				return tx.Create(&parcel{}).Error
			})
		}, want: [2]int{1, 1}},
		"no nested transactions": {session: gorm.Session{DisableNestedTransaction: true}, run: func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error {
				return tx.Transaction(func(inner *gorm.DB) error { return inner.Create(&parcel{}).Error })
			})
		}, want: [2]int{1, 1}},
		"a savepoint": {run: func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error {
				return errors.Join(tx.SavePoint("a").Error, tx.Create(&parcel{}).Error, tx.RollbackTo("a").Error,
					tx.Create(&parcel{}).Error)
			})
		}, want: [2]int{1, 1}},
		"a context that has ended": {run: func(db *gorm.DB) error {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			return db.Transaction(func(tx *gorm.DB) error {
				_, err := queue.EnqueueJob(context.WithoutCancel(ended), queue.GORM(tx.WithContext(ended)), org,
					queue.RawPayload{Type: "ship"}, queue.JobOptions{})
				return err
			})
		}, err: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			db, count := parcels(t, b, c.config)
			assert.ErrorIs(t, c.run(db.Session(&c.session)), c.err)
			assert.Equal(t, c.want, count())
		})
	}
}
