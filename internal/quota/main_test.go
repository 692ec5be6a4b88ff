package quota_test

import (
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.Checks(100)
	testenv.Overlap(4)
	testenv.Main(m)
}
