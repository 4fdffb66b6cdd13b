// Package exchange carries contract results from where they were made, such as CI, to where they count: signed with Ed25519 in a
// DSSE envelope (https://github.com/secure-systems-lab/dsse, version 1).
//
// It imports contracts/report and internal/canonical, and no database.
package exchange

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// maxKeyFile bounds a file that holds a key, in bytes.
const maxKeyFile = 64 << 10

// The types of PEM blocks, and what key files end in.
const (
	pemPrivate   = "PRIVATE KEY" // PKCS #8
	pemPublic    = "PUBLIC KEY"  // PKIX
	PublicSuffix = ".pub"
)

// PublicKey is one whose signatures are trusted.
type PublicKey struct {
	key ed25519.PublicKey
	ID  string // SHA256: and the base64 of the key's fingerprint, as ssh-keygen has it
}

// PrivateKey signs.
type PrivateKey struct {
	PublicKey
	private ed25519.PrivateKey
}

// GenerateKey returns a new key.
func GenerateKey() (PrivateKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("generate a key: %w", err)
	}
	return privateKey(private)
}

func privateKey(k ed25519.PrivateKey) (PrivateKey, error) {
	public, ok := k.Public().(ed25519.PublicKey)
	if !ok {
		return PrivateKey{}, errors.New("the key has no public half")
	}
	p, err := publicKey(public)
	return PrivateKey{PublicKey: p, private: k}, err
}

func publicKey(k ed25519.PublicKey) (PublicKey, error) {
	id, err := dsse.SHA256KeyID(k)
	if err != nil {
		return PublicKey{}, fmt.Errorf("name the key: %w", err)
	}
	return PublicKey{key: k, ID: id}, nil
}

// Write keeps the key in the file name, for its owner alone, and its public half in name.pub. It overwrites neither: a key that is
// gone cannot sign again.
func (k PrivateKey) Write(name string) (err error) {
	private, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return fmt.Errorf("encode the key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(k.key)
	if err != nil {
		return fmt.Errorf("encode the key: %w", err)
	}
	if err := writeNew(name, 0o600, &pem.Block{Type: pemPrivate, Bytes: private}); err != nil {
		return err
	}
	if err := writeNew(name+PublicSuffix, 0o644, &pem.Block{Type: pemPublic, Bytes: public}); err != nil {
		return errors.Join(err, os.Remove(name)) // it was made just now
	}
	return nil
}

func writeNew(name string, mode os.FileMode, block *pem.Block) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("write a key: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pem.Encode(f, block); err != nil {
		return fmt.Errorf("write a key: %w", err)
	}
	return nil
}

// ReadPrivateKey reads a PEM file with one Ed25519 key in PKCS #8. Errors never hold any of it.
func ReadPrivateKey(name string) (PrivateKey, error) {
	der, err := readPEM(name, pemPrivate)
	if err != nil {
		return PrivateKey{}, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	k, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return PrivateKey{}, fmt.Errorf("the key file %s holds no Ed25519 key in PKCS #8", name)
	}
	return privateKey(k)
}

// ReadPublicKey reads a PEM file with one Ed25519 key in PKIX.
func ReadPublicKey(name string) (PublicKey, error) {
	der, err := readPEM(name, pemPublic)
	if err != nil {
		return PublicKey{}, err
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	k, ok := parsed.(ed25519.PublicKey)
	if err != nil || !ok {
		return PublicKey{}, fmt.Errorf("the key file %s holds no Ed25519 key in PKIX", name)
	}
	return publicKey(k)
}

func readPEM(name, kind string) ([]byte, error) {
	raw, err := ReadFile(name, maxKeyFile)
	if err != nil {
		return nil, fmt.Errorf("read a key: %w", err)
	}
	block, rest := pem.Decode(raw)
	switch {
	case block == nil:
		return nil, fmt.Errorf("the key file %s is not PEM", name)
	case block.Type != kind:
		return nil, fmt.Errorf("the key file %s holds a %q; a %q is expected", name, block.Type, kind)
	}
	if more, _ := pem.Decode(rest); more != nil {
		return nil, fmt.Errorf("the key file %s holds more than one key", name)
	}
	return block.Bytes, nil
}

// ReadFile reads a file of at most so many bytes.
func ReadFile(name string, most int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > most {
		return nil, fmt.Errorf("the file %s is larger than %d bytes", name, most)
	}
	return raw, nil
}

// The methods that dsse wants of keys.

type signer struct{ PrivateKey }

func (s signer) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(s.private, data), nil
}
func (s signer) KeyID() (string, error) { return s.ID, nil }

type verifier struct{ PublicKey }

func (v verifier) Verify(_ context.Context, data, sig []byte) error {
	if !ed25519.Verify(v.key, data, sig) {
		return errors.New("the signature is not this key's")
	}
	return nil
}
func (v verifier) KeyID() (string, error)   { return v.ID, nil }
func (v verifier) Public() crypto.PublicKey { return v.key }
