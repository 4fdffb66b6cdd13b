package config

import (
	"strings"
)

// maxWebhookSecrets bounds how many signatures a delivery carries.
const maxWebhookSecrets = 4

// webhookSecrets reads the variable's text: secrets separated by white space, each whsec_ and the base64 of 24 to 64 bytes.
func (l *loader) webhookSecrets(w *Webhooks, text string) {
	if w.SecretEnv == "" {
		return
	}
	secrets := strings.Fields(text)
	if len(secrets) > maxWebhookSecrets {
		l.problem("webhooks.secret_env", "%s holds more than %d secrets", w.SecretEnv, maxWebhookSecrets)
	}
	for _, s := range secrets {
		if !signingSecret(s) { // not repeated
			l.problem("webhooks.secret_env", "what %s holds is not whsec_ and the base64 of 24 to 64 bytes", w.SecretEnv)
			return
		}
		w.Secrets = append(w.Secrets, NewSecret(s))
	}
}
