package config

import (
	"reflect"
	"slices"
	"strings"
)

const (
	envPrefix = "DOCKET_"
	envConfig = "DOCKET_CONFIG"
	// envTest begins the names that the test suite reads; they are no settings.
	envTest = "DOCKET_TEST_"
)

// environment holds variables by name. One that is set to nothing counts as not set: that is what a composed
// deployment's ${NAME:-} leaves behind.
type environment struct{ values map[string]string }

func newEnvironment(environ []string) environment {
	e := environment{values: map[string]string{}}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			e.values[name] = value
		}
	}
	return e
}

// EnvName returns the variable that overrides the value at path: auth.mode is DOCKET_AUTH_MODE.
func EnvName(path string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// environment lays the variables over cfg. It goes from the keys to the variables, never back, so that the underscores
// inside of keys cannot be mistaken.
func (l *loader) environment(cfg *Config, env environment) {
	eachScalar(reflect.ValueOf(cfg).Elem(), "", func(path string, dst reflect.Value) {
		name := EnvName(path)
		text := env.values[name]
		if text == "" {
			return
		}
		l.origins[path] = name
		if err := setScalar(dst, text); err != nil {
			l.problem(path, "%v", err)
		}
	})
}

// unknown warns of variables that look like settings and are none. They are not refused: a cluster that runs a service
// named docket sets DOCKET_PORT and its like by itself, in every pod.
func (e environment) unknown(cfg *Config) []string {
	known := map[string]bool{envConfig: true, cfg.Webhooks.SecretEnv: true}
	eachScalar(reflect.ValueOf(cfg).Elem(), "", func(path string, _ reflect.Value) { known[EnvName(path)] = true })
	for _, p := range cfg.Providers {
		known[p.APIKeyEnv], known[p.CallbackSecretEnv] = true, true
	}
	var warnings []string
	for name := range e.values {
		if strings.HasPrefix(name, envPrefix) && !strings.HasPrefix(name, envTest) && !known[name] {
			warnings = append(warnings, "the environment variable "+name+" is not a setting of Docket and has no effect")
		}
	}
	slices.Sort(warnings)
	return warnings
}

// eachScalar calls f for every scalar that is not inside of a list.
func eachScalar(v reflect.Value, path string, f func(path string, v reflect.Value)) {
	if isScalar(v.Type()) {
		f(path, v)
		return
	}
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		if key := v.Type().Field(i).Tag.Get("yaml"); key != "" && key != "-" {
			eachScalar(v.Field(i), join(path, key), f)
		}
	}
}
