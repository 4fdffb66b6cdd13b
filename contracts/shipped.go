package contracts

import (
	"embed"
	"io/fs"
)

//go:embed tasks
var shipped embed.FS

// ShippedTasks returns the task folders that come with Docket, at the root of the file system, so that a binary starts
// without the repository beside it.
func ShippedTasks() fs.FS {
	sub, err := fs.Sub(shipped, "tasks")
	if err != nil {
		panic(err) // the path is a constant that go:embed has checked
	}
	return sub
}
