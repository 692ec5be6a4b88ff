package ratelimit

import (
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.Checks(20)
	testenv.Overlap(4)
	testenv.Main(m)
}
