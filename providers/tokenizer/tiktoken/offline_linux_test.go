package tiktoken_test

import (
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers/tokenizer/tiktoken"
)

const offline = "DOCKET_TEST_OFFLINE"

// TestCountsWithTheNetworkOff runs itself in a network namespace that has no interface up.
func TestCountsWithTheNetworkOff(t *testing.T) {
	t.Parallel()
	if os.Getenv(offline) == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCountsWithTheNetworkOff$", "-test.v")
		c.Env = append(os.Environ(), offline+"=yes")
		c.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "counted without a network")
		return
	}
	for _, address := range []string{"127.0.0.1:9", "192.0.2.1:443"} {
		_, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(t.Context(), "tcp", address)
		require.ErrorIs(t, err, syscall.ENETUNREACH, "there is a network here")
	}
	for _, name := range tiktoken.Names() {
		e, ok := tiktoken.New(name)
		require.True(t, ok)
		n, err := e.Count("hello world")
		require.NoError(t, err)
		require.Equal(t, 2, n)
	}
	t.Log("counted without a network")
}
