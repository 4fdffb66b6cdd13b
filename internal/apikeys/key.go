package apikeys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"hash/crc32"
	"strings"

	"go.jetify.com/typeid"

	"github.com/docket-gateway/docket/internal/auth"
)

// A key is dk_<id>_<secret><checksum>: the 26 characters of its row's id, 32 random bytes in 52 characters, and the CRC-32
// of all before it in 7. The checksum is no protection: with it a search for leaked keys tells them from other text.
const (
	idPrefix      = "key"
	idLength      = 26
	secretBytes   = 32
	secretLength  = 52
	checkLength   = 7
	wholeLength   = len(auth.KeyPrefix) + idLength + 1 + secretLength + checkLength
	checkedLength = wholeLength - checkLength
)

// encoding is that of TypeIDs.
var encoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// generate makes a new key and the id of its row.
func generate() (id, key string) {
	suffix := typeid.Must(typeid.WithPrefix(idPrefix)).Suffix()
	var secret [secretBytes]byte
	_, _ = rand.Read(secret[:]) // never fails
	key = auth.KeyPrefix + suffix + "_" + encoding.EncodeToString(secret[:])
	return idPrefix + "_" + suffix, key + checksum(key)
}

func checksum(s string) string {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE([]byte(s)))
	return encoding.EncodeToString(sum[:])
}

// parse returns the id of a key's row. ok is false if the text cannot be a key, whatever is stored.
func parse(key string) (id string, ok bool) {
	if len(key) != wholeLength || !strings.HasPrefix(key, auth.KeyPrefix) || checksum(key[:checkedLength]) != key[checkedLength:] {
		return "", false
	}
	return idPrefix + "_" + key[len(auth.KeyPrefix):len(auth.KeyPrefix)+idLength], true
}

// hash needs no salt and no slow function: nobody can guess 32 random bytes.
func hash(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}
