package auditlogs_test

import (
	"testing"

	"github.com/sendquota/sendquota/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// bundle is a [storetest.Bundle] with helpers for the tests of this package.
type bundle struct{ *storetest.Bundle }

func setup(t testing.TB) *bundle { return &bundle{storetest.Setup(t)} }

func setupAlone(t testing.TB) *bundle { return &bundle{storetest.SetupAlone(t)} }

func setupProxy(t *testing.T) (*bundle, *storetest.Lossy) {
	b, proxy := storetest.SetupProxy(t)
	return &bundle{b}, proxy
}
