package scalar

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimeIsWrittenInUTC(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	MarshalTime(time.Date(2026, 3, 14, 13, 0, 0, 123456000, time.FixedZone("CET", 3600))).MarshalGQL(&b)
	require.Equal(t, `"2026-03-14T12:00:00.123456Z"`, b.String())
}
