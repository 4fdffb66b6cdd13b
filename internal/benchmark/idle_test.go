package benchmark

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/program"
)

const (
	idleFor  = 20 * time.Second
	settling = 3 * time.Second
	// tick is the unit of CPU times in /proc, on every Linux that Go runs on (USER_HZ, proc(5)).
	tick = 10 * time.Millisecond
)

// BenchmarkIdle measures what a gateway without any work takes of a core, by how many providers it knows: each has a queue.
func BenchmarkIdle(b *testing.B) {
	path, err := program.Build(b.Context(), b.TempDir())
	require.NoError(b, err)
	for name, address := range map[string]func(b *testing.B) string{
		"SQLite":     func(b *testing.B) string { b.Helper(); return "sqlite://" + filepath.Join(b.TempDir(), "docket.db") },
		"PostgreSQL": func(b *testing.B) string { b.Helper(); return databases.DSN(b) },
	} {
		for _, n := range []int{1, 20} {
			b.Run(fmt.Sprintf("%s/providers=%d", name, n), func(b *testing.B) {
				var more strings.Builder
				for i := range n - 1 {
					fmt.Fprintf(&more, "  - {name: idle-%d, kind: openai-compatible, base_url: http://127.0.0.1:9/v1, models: [{name: m}]}\n", i)
				}
				config := holeConfig(b, address(b))
				file, err := os.OpenFile(config, os.O_APPEND|os.O_WRONLY, 0)
				require.NoError(b, err)
				_, err = file.WriteString(more.String())
				require.NoError(b, err)
				require.NoError(b, file.Close())
				gateway := runGateway(b, path, config)
				for range b.N {
					time.Sleep(settling) //nolint:forbidigo // what is measured is waiting
					before := cpuTime(b, gateway)
					time.Sleep(idleFor) //nolint:forbidigo // the same
					b.ReportMetric(100*float64(cpuTime(b, gateway)-before)/float64(idleFor), "%core")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// cpuTime is what the process alone has used, without a database server.
func cpuTime(b *testing.B, p *program.Process) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	require.NoError(b, err)
	_, rest, found := strings.Cut(string(stat), ") ") // a program's name may have spaces
	require.True(b, found)
	fields := strings.Fields(rest) // from the third on
	var ticks int
	for _, field := range fields[11:13] { // utime, stime
		n, err := strconv.Atoi(field)
		require.NoError(b, err)
		ticks += n
	}
	return time.Duration(ticks) * tick
}
