module github.com/docket-gateway/docket

go 1.26.0

require (
	github.com/gowebpki/jcs v1.0.2
	github.com/santhosh-tekuri/jsonschema/v5 v5.3.1
	github.com/stretchr/testify v1.12.1
	pgregory.net/rapid v1.3.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
