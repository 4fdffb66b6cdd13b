package meaning

import (
	"context"
	"encoding/json"
)

// CheckWithin is Check with another bound than MaxWork.
func (a Assertion) CheckWithin(ctx context.Context, steps int64, input, output json.RawMessage) (string, error) {
	return a.check(ctx, steps, input, output)
}
