package campaign_test

import (
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.Checks(50) // a fifth of them has collisions
	testenv.Main(m)
}
