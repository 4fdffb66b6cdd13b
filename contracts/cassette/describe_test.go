package cassette

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALocalServerIsOneOfThisMachineByItsName(t *testing.T) {
	t.Parallel()
	for address, local := range map[string]bool{
		"http://127.0.0.1:8080/v1": true, "http://[::1]:8080": true, "http://LocalHost/v1": true, "https://printer.LOCALHOST/v1": true,
		"https://api.example.com/v1": false, "https://localhost.example.com": false, "https://notlocalhost": false, "http://192.168.0.1": false, "": false,
	} {
		require.Equal(t, local, onThisMachine(address), address)
	}
}
