package acceptance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/pgtest"
)

// A transaction pooler gives a connection to somebody else after each transaction, so nobody can listen through it. Which
// way each connection came is told by its name.
func TestListensPastThePooler(t *testing.T) {
	t.Parallel()
	database := databases.DSN(t)
	g, _ := newGateway(t, settings{
		database: pgtest.Named(t, database, "pooled"), more: fmt.Sprintf("database_direct: %q\n", pgtest.Named(t, database, "direct")),
	})
	db, _ := open(t, database)
	var seen []string
	await.Until(t, "River and the notices of jobs listen", func() bool {
		seen = nil
		for _, row := range query(t, db, "SELECT application_name || ': ' || query FROM pg_stat_activity WHERE datname = current_database() AND application_name IN ('pooled', 'direct')") {
			seen = append(seen, row[0])
		}
		all := strings.Join(seen, "\n")
		return strings.Contains(all, "LISTEN docket_jobs") && strings.Contains(all, "river_")
	})
	listening := 0
	for _, connection := range seen {
		if strings.Contains(connection, "LISTEN ") {
			require.Regexp(t, "^direct: ", connection)
			listening++
		}
	}
	require.GreaterOrEqual(t, listening, 2, "%q", seen)
	g.create(t, variables{"idempotencyKey": "k", "task": "echo", "input": variables{"text": "hello"}})
}
