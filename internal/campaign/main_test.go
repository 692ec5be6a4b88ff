package campaign_test

import (
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.Checks(100)
	testenv.Main(m)
}
