// Package documents reads manifests of trusted documents: the operations of an application, which its clients name by their
// hash instead of sending them.
//
// It imports internal/canonical and nothing else of this module.
package documents

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/docket-gateway/docket/internal/canonical"
)

// maxManifest bounds a manifest's file, in bytes.
const maxManifest = 64 << 20

// apolloFormat is how a manifest of Apollo's generate-persisted-query-manifest names itself.
const apolloFormat = "apollo-persisted-query-manifest"

// sha256Prefix begins an id that says how it was made; all others are the application's own affair.
const sha256Prefix = "sha256:"

// Set is a manifest's documents. It is immutable and safe for concurrent use.
type Set struct {
	byID  map[string]string
	texts map[string]struct{}
}

// Load reads a manifest: a JSON object of id and document, as graphql-codegen's client preset and the Relay compiler write
// it, or Apollo's format. Documents are not looked at, but an id that begins with sha256: must be that of its document.
func Load(path string) (*Set, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trusted documents: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("trusted documents: read %s: %w", path, err)
	}
	if len(text) > maxManifest {
		return nil, fmt.Errorf("trusted documents: %s has more than %d bytes", path, maxManifest)
	}
	s, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("trusted documents: %s: %w", path, err)
	}
	return s, nil
}

// Parse reads the text of a manifest, see Load.
func Parse(text []byte) (*Set, error) {
	if err := canonical.Check(text); err != nil { // also finds an id that is there twice
		return nil, err
	}
	var head struct {
		Format     string `json:"format"`
		Version    int    `json:"version"`
		Operations []struct {
			ID   string `json:"id"`
			Body string `json:"body"`
		} `json:"operations"`
	}
	byID := map[string]string{}
	if json.Unmarshal(text, &head) == nil && head.Format == apolloFormat {
		if head.Version != 1 {
			return nil, fmt.Errorf("version %d of Apollo's format is not known, 1 is", head.Version)
		}
		for _, o := range head.Operations {
			if _, twice := byID[o.ID]; twice {
				return nil, fmt.Errorf("%q is there twice", o.ID)
			}
			byID[o.ID] = o.Body
		}
	} else if err := json.Unmarshal(text, &byID); err != nil {
		return nil, fmt.Errorf("must be a JSON object of ids and documents, both strings")
	}
	if len(byID) == 0 {
		return nil, fmt.Errorf("holds no document")
	}
	s := &Set{byID: byID, texts: make(map[string]struct{}, len(byID))}
	for id, document := range byID {
		if id == "" || document == "" {
			return nil, fmt.Errorf("holds an empty id or an empty document")
		}
		if hash, ok := strings.CutPrefix(id, sha256Prefix); ok && hash != digest(document) {
			return nil, fmt.Errorf("%q is not the hash of its document", id)
		}
		s.texts[document] = struct{}{}
	}
	return s, nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Lookup returns the document of an id. The prefix sha256: may be there or not, on either side.
func (s *Set) Lookup(id string) (document string, ok bool) {
	if document, ok = s.byID[id]; ok {
		return document, true
	}
	if hash, prefixed := strings.CutPrefix(id, sha256Prefix); prefixed {
		document, ok = s.byID[hash]
		return document, ok && digest(document) == hash // who says SHA-256 means it
	}
	document, ok = s.byID[sha256Prefix+id]
	return document, ok
}

// Trusts reports whether the manifest holds the document, byte for byte.
func (s *Set) Trusts(document string) bool {
	_, ok := s.texts[document]
	return ok
}

// IDs returns all ids in order.
func (s *Set) IDs() []string { return slices.Sorted(maps.Keys(s.byID)) }
