package testenv

import "github.com/sendquota/sendquota/internal/seal"

// SealKey is the key of programs and stores in tests for sealing secrets.
const SealKey = "c2VuZHF1b3RhIHRlc3RzIHNlYWwgYnkgdGhpcyBrZXk="

// Sealer returns a sealer with SealKey.
func Sealer() *seal.Sealer {
	s, err := seal.New(SealKey)
	if err != nil {
		panic(err) // the constant is wrong; any test would show it
	}
	return s
}
