package jobs

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/docket-gateway/docket/internal/canonical"
)

// maxKey is the longest idempotency key in bytes.
const maxKey = 255

// checkKey holds the rule for idempotency keys: 1 to 255 printable ASCII characters.
func checkKey(key *string) error {
	const path = "/idempotencyKey"
	switch {
	case key == nil:
		return invalid(path, "is required, here or as the Idempotency-Key header")
	case *key == "":
		return invalid(path, "must not be empty")
	case len(*key) > maxKey:
		return invalid(path, "must have at most %d characters", maxKey)
	}
	for i := range len(*key) {
		if c := (*key)[i]; c < 0x20 || c > 0x7e {
			return invalid(path, "must be printable ASCII; character %d is not", i+1)
		}
	}
	return nil
}

// ValidKey reports whether a job can have this idempotency key.
func ValidKey(key string) bool { return checkKey(&key) == nil }

// fingerprint is SHA-256 over the intent's canonical form. A field that was left out or null is not in it; defaults of the
// server are not part of the intent.
func (in CreateInput) fingerprint() ([]byte, error) {
	doc := map[string]any{"task": in.Task, "input": in.Input}
	if in.Target != nil {
		doc["target"] = *in.Target
	}
	if in.Fallbacks != nil {
		doc["fallbacks"] = in.Fallbacks
	}
	if in.HedgeAfterMS != nil {
		doc["hedgeAfterMs"] = json.Number(strconv.Itoa(*in.HedgeAfterMS))
	}
	if in.CallbackURL != nil {
		doc["callbackUrl"] = *in.CallbackURL
	}
	if len(in.Input) == 0 {
		return nil, invalid("/input", "is required")
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, invalid("/input", "is not valid JSON")
	}
	c, err := canonical.Canonicalize(raw)
	var number *canonical.NumberError
	var syntax *canonical.SyntaxError
	switch {
	case errors.As(err, &number):
		return nil, invalid(number.Pointer, "%s", number.Rule)
	case errors.As(err, &syntax):
		return nil, invalid(cmp.Or(syntax.Pointer, "/input"), "%s", syntax.Rule)
	case err != nil:
		return nil, fmt.Errorf("canonicalise the intent: %w", err)
	}
	sum := sha256.Sum256(c)
	return sum[:], nil
}
