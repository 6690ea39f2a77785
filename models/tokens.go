package models

import "time"

// APIToken is one row of daybook.api_tokens: who may use the HTTP API.
type APIToken struct {
	ID string `gorm:"column:id;primaryKey" json:"id"`
	// OrgID is the only organization that the token may reach; nil: all.
	OrgID *string `gorm:"column:org_id" json:"org_id,omitempty"`
	Name  string  `gorm:"column:name" json:"name"`
	// Scopes are what it allows: read, enqueue, operate.
	Scopes Words `gorm:"column:scopes" json:"scopes"`
	// Hash is the token's SHA-256; the token itself is not stored.
	Hash       []byte     `gorm:"column:hash" json:"-"`
	CreatedAt  time.Time  `gorm:"column:created_at" json:"created_at"`
	LastUsedAt *time.Time `gorm:"column:last_used_at" json:"last_used_at,omitempty"`
	RevokedAt  *time.Time `gorm:"column:revoked_at" json:"revoked_at,omitempty"`
	// Types are the types of background jobs that it may enqueue; nil: all but those that need the scope operate.
	Types Words `gorm:"column:types" json:"types,omitempty"`
	// RequestsPerMinute and JobsPerMinute are how many requests each server accepts from it, and how many jobs it enqueues for it, in a
	// minute; nil: no limit.
	RequestsPerMinute *int `gorm:"column:requests_per_minute" json:"requests_per_minute,omitempty"`
	JobsPerMinute     *int `gorm:"column:jobs_per_minute" json:"jobs_per_minute,omitempty"`
	// RunByGet lets GET /api/jobs/run work due jobs.
	RunByGet bool `gorm:"column:run_by_get" json:"run_by_get,omitempty"`
}

// TableName implements GORM's Tabler.
func (APIToken) TableName() string { return "daybook.api_tokens" }
