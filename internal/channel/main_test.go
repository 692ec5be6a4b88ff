package channel

import (
	"os"
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.Overlap(32) // they wait for providers that hang
	os.Exit(m.Run())
}
