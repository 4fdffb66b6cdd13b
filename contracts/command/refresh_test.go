package command_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/command"
	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/internal/tasks"
)

func TestRefresh(t *testing.T) {
	t.Parallel()
	open := func(targets ...string) command.CheckFunc {
		return func(_ context.Context, _ *tasks.Definition, target string) (gate.Decision, error) {
			if strings.Contains(strings.Join(targets, " "), target) {
				return gate.Decision{Allowed: true, State: gate.Passed}, nil
			}
			return gate.Decision{State: gate.Missing}, nil
		}
	}
	every := (*tasks.Definition).Route

	t.Run("RunsWhatIsClosed", func(t *testing.T) {
		t.Parallel()
		runner, recorder := &fakeRunner{}, &fakeRecorder{}
		ran, err := command.Refresh(t.Context(), suites(), every, open("a/one"), runner, recorder)
		require.NoError(t, err)
		require.Equal(t, []string{"invoice@b/two"}, runner.asked)
		require.Equal(t, ran, recorder.stored)
		require.Zero(t, runner.options.Runs, "as often as the task's contract says")
	})

	t.Run("LetsAFailureStandWhileNothingChanged", func(t *testing.T) {
		t.Parallel()
		runner := &fakeRunner{}
		failed := func(context.Context, *tasks.Definition, string) (gate.Decision, error) {
			return gate.Decision{State: gate.Failed}, nil
		}
		ran, err := command.Refresh(t.Context(), suites(), every, failed, runner, &fakeRecorder{})
		require.NoError(t, err)
		require.Empty(t, ran)
		require.Empty(t, runner.asked)
	})

	t.Run("LeavesOtherTargetsAlone", func(t *testing.T) {
		t.Parallel()
		runner := &fakeRunner{}
		_, err := command.Refresh(t.Context(), suites(), func(*tasks.Definition) []string { return []string{"a/one"} }, open(), runner, &fakeRecorder{})
		require.NoError(t, err)
		require.Equal(t, []string{"invoice@a/one", "triage@a/one"}, runner.asked)
	})

	t.Run("GoesOnAfterOneThatCannotRun", func(t *testing.T) {
		t.Parallel()
		runner, recorder := &fakeRunner{broken: map[string]bool{"a/one": true}}, &fakeRecorder{}
		ran, err := command.Refresh(t.Context(), suites(), every, open(), runner, recorder)
		require.ErrorIs(t, err, contracts.ErrUnknownTarget)
		require.ErrorContains(t, err, "triage at a/one")
		require.Len(t, ran, 1)
		require.Len(t, recorder.stored, 1)
	})

	t.Run("StopsWhenInterrupted", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		runner := &fakeRunner{after: cancel}
		_, err := command.Refresh(ctx, suites(), every, open(), runner, &fakeRecorder{})
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, runner.asked, 1)
	})
}
