package webhooks

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const secretPrefix = "whsec_"

// Bounds of a secret's bytes, as the specification has them.
const (
	minSecret = 24
	maxSecret = 64
)

// checkSecret holds the rule for secrets: whsec_ and the base64 of 24 to 64 bytes. The error does not repeat the secret.
func checkSecret(secret string) error {
	encoded, ok := strings.CutPrefix(secret, secretPrefix)
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(raw) < minSecret || len(raw) > maxSecret {
		return errors.New("a webhook secret is whsec_ and the base64 of 24 to 64 bytes")
	}
	return nil
}

// signer signs with every secret, so that a receiver may know the old or the new one while they are changed.
type signer []*standardwebhooks.Webhook

func newSigner(secrets []string) (signer, error) {
	var s signer
	for _, secret := range secrets {
		if err := checkSecret(secret); err != nil {
			return nil, fmt.Errorf("webhooks: %w", err)
		}
		w, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			return nil, errors.New("webhooks: a secret cannot be read") // the library's error may quote it
		}
		s = append(s, w)
	}
	return s, nil
}

func (s signer) ready() bool { return len(s) > 0 }

// sign sets the specification's headers. at is the time of this try, so that a receiver can refuse what was sent long ago.
func (s signer) sign(h http.Header, id string, at time.Time, body []byte) error {
	all := make([]string, 0, len(s))
	for _, w := range s {
		one, err := w.Sign(id, at, body)
		if err != nil {
			return fmt.Errorf("sign: %w", err)
		}
		all = append(all, one)
	}
	h.Set(standardwebhooks.HeaderWebhookID, id)
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	h.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(all, " "))
	return nil
}
