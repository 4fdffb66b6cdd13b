package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWebhookSecrets(t *testing.T) {
	t.Parallel()
	const one, two = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"None", "", nil},
		{"One", one + "\n", []string{one}},
		{"Several", " " + one + "\n" + two, []string{one, two}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cfg, err := Load(write(t, ""), []string{"DOCKET_WEBHOOK_SECRET=" + tc.text})
			require.NoError(t, err)
			var got []string
			for _, s := range cfg.Webhooks.Secrets {
				got = append(got, s.Reveal())
			}
			require.Equal(t, tc.want, got)
			require.Empty(t, cfg.Warnings)
		})
	}
	for _, text := range []string{"hunter2", one + " hunter2", "whsec_hunter2!", "whsec_c2hvcnQ=", "whsec_" + strings.Repeat("QUFB", 22), strings.Repeat(one+" ", 5)} {
		_, err := Load(write(t, ""), []string{"DOCKET_WEBHOOK_SECRET=" + text})
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, "webhooks.secret_env")
		for _, part := range strings.Fields(text) {
			require.NotContains(t, err.Error(), part)
		}
	}
}

func TestWebhookSecretIsNeitherInTheFileNorUnnoticedWhenItIsMissing(t *testing.T) {
	t.Parallel()
	_, err := Load(write(t, "webhooks: {secret_env: whsec_MfKQ}"), nil)
	require.ErrorIs(t, err, ErrInvalid)
	require.NotContains(t, err.Error(), "MfKQ")
	cfg, err := Load(write(t, "webhooks: {secret_env: HOOKS, allow_private: true}"), nil)
	require.NoError(t, err)
	require.True(t, cfg.Webhooks.AllowPrivate)
	require.Len(t, cfg.Warnings, 1)
	require.Contains(t, cfg.Warnings[0], "HOOKS is not set")
	_, err = Load(write(t, `webhooks: {secret_env: ""}`), nil)
	require.NoError(t, err)
}
