package apikeys

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/docket-gateway/docket/ent/apikey"
	"github.com/docket-gateway/docket/internal/viewer"
)

// lookAtOnce bounds the parameters of one statement.
const lookAtOnce = 500

// watch calls revoked, once, when Run sees that the key was revoked.
func (k *Keys) watch(id string, revoked func()) (stop func()) {
	w := &watch{revoked: revoked}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open[id] == nil {
		k.open[id] = map[*watch]struct{}{}
	}
	k.open[id][w] = struct{}{}
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.open[id], w)
		if len(k.open[id]) == 0 {
			delete(k.open, id)
		}
	}
}

// Run looks every MaxAge at the keys that open connections came with, until ctx is done. While there are none it asks the
// database nothing; while the database does not answer, connections stay open.
func (k *Keys) Run(ctx context.Context) {
	t := time.NewTicker(k.o.MaxAge)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := k.look(ctx); err != nil && ctx.Err() == nil {
			k.o.Logger.WarnContext(ctx, "the API keys of open connections cannot be looked up", "error", err)
		}
	}
}

func (k *Keys) look(ctx context.Context) error {
	k.mu.Lock()
	ids := make([]string, 0, len(k.open))
	for id := range k.open {
		ids = append(ids, id)
	}
	k.mu.Unlock()
	for some := range slices.Chunk(ids, lookAtOnce) {
		good, err := k.client.APIKey.Query().Where(apikey.IDIn(some...), apikey.RevokedAtIsNil()).IDs(viewer.NewSystemContext(ctx))
		if err != nil {
			return fmt.Errorf("read the keys of open connections: %w", err)
		}
		for _, id := range some {
			if !slices.Contains(good, id) {
				k.end(id)
			}
		}
	}
	return nil
}

// end tells the connections of a key that it was revoked, and forgets what is cached of it.
func (k *Keys) end(id string) {
	k.mu.Lock()
	delete(k.cached, id)
	watches := k.open[id]
	delete(k.open, id)
	k.mu.Unlock()
	for w := range watches {
		w.revoked()
	}
}
