package exchange

import "github.com/secure-systems-lab/go-securesystemslib/dsse"

// Signer lets tests sign what Seal would not.
func Signer(k PrivateKey) dsse.Signer { return signer{k} }
