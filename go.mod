module github.com/docket-gateway/docket

go 1.26.0
