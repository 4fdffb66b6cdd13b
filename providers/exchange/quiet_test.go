package exchange_test

import (
	"log"
	"log/slog"
)

// quiet swallows a test server's complaints about handshakes that are meant to fail.
func quiet() *log.Logger { return slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) }
