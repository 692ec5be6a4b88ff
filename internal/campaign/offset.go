package campaign

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"time"
)

// Offset returns a recipient's offset from the first send time of a campaign with a spread: whole seconds, at least 0
// and less than the spread. It is ⌊h·s/2⁶⁴⌋ seconds, where h is the first eight bytes of the SHA-256 of the recipient's
// id, the highest first, and s is the spread in seconds, rounded up.
//
// So it follows from the recipient and the spread alone: a recipient has the same offset in each campaign with the same
// spread, and recipients have the same order in all campaigns. The formula must not change, so that two campaigns keep
// their distance for every recipient.
func Offset(recipient string, spread time.Duration) time.Duration {
	if spread <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(recipient))
	seconds := uint64((spread-1)/time.Second) + 1
	offset, _ := bits.Mul64(binary.BigEndian.Uint64(sum[:]), seconds)
	return time.Duration(offset) * time.Second
}
