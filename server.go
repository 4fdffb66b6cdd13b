// Docket is a GraphQL gateway for AI work: one durable job per user intent, any number of attempts, exactly one winner.
package main

//go:generate go run ./ent/entc.go
//go:generate go tool gqlgen generate

func main() {}
