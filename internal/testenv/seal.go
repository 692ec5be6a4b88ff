package testenv

import "github.com/sendquota/sendquota/internal/seal"

// SealKey is the key by which programs and stores of tests seal secrets.
const SealKey = "c2VuZHF1b3RhIHRlc3RzIHNlYWwgYnkgdGhpcyBrZXk="

// Sealer seals by SealKey.
func Sealer() *seal.Sealer {
	s, err := seal.New(SealKey)
	if err != nil {
		panic(err) // the constant is wrong, which any test shows
	}
	return s
}
