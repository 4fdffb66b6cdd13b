module github.com/docket-gateway/docket

go 1.26.0

require github.com/goccy/go-yaml v1.19.2 // indirect
