package console

import (
	"context"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// overview adds the first page: whether work gets done.
func (c *console) overview() {
	c.addToMenu(menuEntry{Group: "", Name: "Overview", Path: ""})
	c.page("GET "+Root+"{$}", tokens.ScopeRead, func(ctx context.Context, r *request) (*view, error) {
		org, err := r.org()
		if err != nil {
			return nil, err
		}
		queues, err := store.Status(ctx, c.Pool, org)
		if err != nil {
			return nil, err
		}
		return &view{Title: "Overview", Template: "overview", Live: true, Data: map[string]any{"Queues": queues, "Org": org}}, nil
	})
}
