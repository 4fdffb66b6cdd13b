package config

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// maxCallbackSecrets bounds how many secrets a provider's callbacks are tried with: the old and the new one, and room.
const maxCallbackSecrets = 4

// callbackSecrets reads the variables' texts: secrets separated by white space, each whsec_ and the base64 of 24 to 64
// bytes. A short or empty key would let everybody sign.
func (l *loader) callbackSecrets(list []Provider, env environment) {
	for i := range list {
		p := &list[i]
		path := fmt.Sprintf("providers[%d].callback_secret_env", i)
		if p.CallbackSecretEnv == "" {
			continue
		}
		if !variableName.MatchString(p.CallbackSecretEnv) {
			// Not repeated: somebody may have put the secret itself here.
			l.problem(path, "must be the name of an environment variable, in capitals, not a secret")
			continue
		}
		secrets := strings.Fields(env.values[p.CallbackSecretEnv])
		if len(secrets) > maxCallbackSecrets {
			l.problem(path, "%s holds more than %d secrets", p.CallbackSecretEnv, maxCallbackSecrets)
		}
		for _, s := range secrets {
			if !signingSecret(s) {
				l.problem(path, "what %s holds is not whsec_ and the base64 of 24 to 64 bytes", p.CallbackSecretEnv)
				break
			}
			p.CallbackSecrets = append(p.CallbackSecrets, NewSecret(s))
		}
	}
}

// signingSecret reports whether s is a secret as the Standard Webhooks specification has them.
func signingSecret(s string) bool {
	encoded, ok := strings.CutPrefix(s, "whsec_")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	return ok && err == nil && len(raw) >= 24 && len(raw) <= 64
}
