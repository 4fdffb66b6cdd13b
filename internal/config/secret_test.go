package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// everyWay prints v in all the ways that a program prints things.
func everyWay(t *testing.T, v any) string {
	t.Helper()
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%t"} {
		fmt.Fprintf(&out, verb+"\n", v)
	}
	j, err := json.Marshal(v)
	require.NoError(t, err)
	out.Write(j)
	y, err := yaml.Marshal(v)
	require.NoError(t, err)
	out.Write(y)
	slog.New(slog.NewTextHandler(&out, nil)).Info("m", "v", v)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "v", v)
	return out.String()
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	cfg := Default()
	cfg.Providers[0].APIKey = NewSecret(secret)
	cfg.Database = NewDSN("postgres://u:" + secret + "@h/db?password=" + secret)
	type hidden struct {
		key Secret
		dsn DSN
	}
	for name, v := range map[string]any{
		"Secret": NewSecret(secret), "PointerToSecret": &cfg.Providers[0].APIKey, "Provider": cfg.Providers[0],
		"Config": cfg, "ConfigValue": *cfg, "DSN": cfg.Database, "Unexported": hidden{NewSecret(secret), cfg.Database},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := everyWay(t, v)
			require.NotContains(t, out, secret)
			require.NotContains(t, out, fmt.Sprintf("%x", secret))
			require.NotContains(t, out, fmt.Sprintf("%d", []byte(secret)))
		})
	}
	require.Equal(t, secret, cfg.Providers[0].APIKey.Reveal())
}

func TestDSNPrintsWhatHelps(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"sqlite://docket.db":                     "sqlite://docket.db",
		"postgres://u:p@db.example:5432/docket":  "postgres://u@db.example:5432/docket",
		"postgres://h/docket?user=u&password=p1": "postgres://h/docket",
		"postgres:u:p@h":                         redacted,
		"postgres://u:p@h:x/db":                  redacted,
	} {
		require.Equal(t, want, NewDSN(dsn).String())
	}
	require.Empty(t, DSN{}.Reveal())
}

func TestSecretsShowThatTheyAreThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v              any
		plain, asValue string
	}{
		{NewSecret("hunter2"), redacted, `config.Secret("[redacted]")`},
		{Secret{}, "", `config.Secret("")`},
		{NewDSN("postgres://u:hunter2@h/db"), "postgres://u@h/db", `config.DSN("postgres://u@h/db")`},
	} {
		require.Equal(t, c.plain, fmt.Sprintf("%v", c.v))
		require.Equal(t, c.plain, fmt.Sprintf("%s", c.v))
		require.Equal(t, c.asValue, fmt.Sprintf("%#v", c.v))
		j, err := json.Marshal(c.v)
		require.NoError(t, err)
		require.Equal(t, `"`+c.plain+`"`, string(j))
		valuer, ok := c.v.(slog.LogValuer)
		require.True(t, ok)
		require.Equal(t, c.plain, valuer.LogValue().String())
	}
}
