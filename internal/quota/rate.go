package quota

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

// maxOwners bounds what is remembered of owners in this process; who has been away for longest is forgotten, and may then
// have a whole burst again.
const maxOwners = 65_536

// leastWait is what a client is told to wait at least: two processes may have asked at the same moment.
const leastWait = time.Millisecond

// local counts in this process.
type local struct{ limiter *throttled.GCRARateLimiterCtx }

func newLocal(l Limits) (local, error) {
	store, err := memstore.NewCtx(maxOwners)
	if err != nil {
		return local{}, fmt.Errorf("quota: %w", err)
	}
	// The library's burst is what may come on top of the first one.
	limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerMin(l.PerMinute), MaxBurst: l.Burst - 1})
	if err != nil {
		return local{}, fmt.Errorf("quota: %w", err)
	}
	return local{limiter}, nil
}

func (l local) take(ctx context.Context, key string) (time.Duration, error) {
	limited, result, err := l.limiter.RateLimitCtx(ctx, key, 1)
	if err != nil || !limited {
		return 0, err
	}
	return max(result.RetryAfter, leastWait), nil
}

// shared counts in PostgreSQL by the same algorithm, GCRA, in one statement: the library asks a store at least twice for each
// request. What is stored is when the owner's bucket will be full again. The database's clock decides, so that processes need
// not agree on the time.
type shared struct {
	db       *sql.DB
	interval time.Duration // between two operations at the steady rate
	burst    time.Duration // what a whole bucket is worth
}

func newShared(db *sql.DB, l Limits) shared {
	interval := time.Minute / time.Duration(l.PerMinute)
	return shared{db: db, interval: interval, burst: interval * time.Duration(l.Burst)}
}

// The update's own condition decides, on the row as it is under its lock. The second query sees the row as it was before the
// statement: good enough to tell how long to wait.
const takeOne = `
WITH taken AS (
	INSERT INTO request_rates AS r (owner_id, full_at)
	VALUES ($1, clock_timestamp() + $2 * interval '1 microsecond')
	ON CONFLICT (owner_id) DO UPDATE
	SET full_at = greatest(r.full_at, clock_timestamp()) + $2 * interval '1 microsecond'
	WHERE greatest(r.full_at, clock_timestamp()) + $2 * interval '1 microsecond' <= clock_timestamp() + $3 * interval '1 microsecond'
	RETURNING true
)
SELECT EXISTS (SELECT FROM taken),
	coalesce((SELECT extract(epoch FROM full_at - clock_timestamp()) FROM request_rates WHERE owner_id = $1), 0)::double precision`

func (s shared) take(ctx context.Context, key string) (time.Duration, error) {
	var taken bool
	var full float64 // seconds
	err := s.db.QueryRowContext(ctx, takeOne, key, s.interval.Microseconds(), s.burst.Microseconds()).Scan(&taken, &full)
	if err != nil {
		return 0, fmt.Errorf("quota: count a request: %w", err)
	}
	if taken {
		return 0, nil
	}
	wait := time.Duration(full*float64(time.Second)) + s.interval - s.burst
	return max(wait, leastWait), nil
}
