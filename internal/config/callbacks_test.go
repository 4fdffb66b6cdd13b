package config

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	secretA = signing("a", 24)
	secretB = signing("b", 64)
)

func signing(of string, n int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(of, n)))
}

func withCallbacks(env string) string {
	return "providers:\n  - {name: demo, kind: demo, callback_secret_env: " + env + ", models: [{name: fax}]}\n"
}

func TestCallbackSecrets(t *testing.T) {
	t.Parallel()

	t.Run("AreReadFromTheNamedVariableInItsOrder", func(t *testing.T) {
		t.Parallel()
		cfg, err := Load(write(t, withCallbacks("DOCKET_CB")), []string{"DOCKET_CB= " + secretB + "\n" + secretA + "\n"})
		require.NoError(t, err)
		_, missing := cfg.Usable()
		require.Empty(t, missing)
		require.Equal(t, []Secret{NewSecret(secretB), NewSecret(secretA)}, cfg.Providers[0].CallbackSecrets)
		require.Empty(t, cfg.Warnings, "it is a setting")
	})

	t.Run("AreRequiredToServeOnceTheyAreNamed", func(t *testing.T) {
		t.Parallel()
		cfg, err := Load(write(t, withCallbacks("CB")), nil)
		require.NoError(t, err)
		_, missing := cfg.Usable()
		require.Equal(t, []Missing{{"demo", "providers[0].callback_secret_env: the environment variable CB is not set"}}, missing)
	})

	t.Run("RefusesWhatIsNoSecretAndDoesNotRepeatIt", func(t *testing.T) {
		t.Parallel()
		for _, bad := range []string{
			"whsec_", "whsec_hunter2!", signing("a", 23), signing("a", 65), strings.TrimPrefix(secretA, "whsec_"),
			strings.Repeat(secretA+" ", 5), secretA + " whsec_hunter2",
		} {
			_, err := Load(write(t, withCallbacks("CB")), []string{"CB=" + bad})
			require.ErrorIs(t, err, ErrInvalid, bad)
			require.ErrorContains(t, err, "providers[0].callback_secret_env")
			require.NotContains(t, err.Error(), "hunter2")
		}
		_, err := Load(write(t, withCallbacks(secretA)), nil)
		require.ErrorContains(t, err, "must be the name of an environment variable")
		require.NotContains(t, err.Error(), secretA)
	})
}
