// Docket is a GraphQL gateway for AI work: one durable job per user intent, any number of attempts, exactly one winner.
package main

import (
	"os"

	"github.com/docket-gateway/docket/internal/app"
)

//go:generate go run ./ent/entc.go
//go:generate go tool gqlgen generate

func main() { os.Exit(app.Main(os.Args[1:], os.Environ(), os.Stdout, os.Stderr)) }
