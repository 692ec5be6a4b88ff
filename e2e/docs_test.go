package e2e

import (
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestDocs_Read: the reading page, in a browser.
func TestDocs_Read(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.StartAPI()
	w := openWindow(t, b.api)
	w.visit("/docs")
	w.screen("docs")
}

// TestDocs_Try: Scalar shows our operations and sends a request with a key.
func TestDocs_Try(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.StartAPI()
	w := openWindow(t, b.api)
	w.visit("/docs/try")
	w.said("Submit a push")
	*update = true
	w.screenshot("try")
	w.visit("/docs/try#tag/pushes/GET/v1/pushes")
	w.until("document.body.innerText.includes('Test Request')")
	w.click("#reference button.show-api-client-button")
	testenv.Sleep(t, 3e9)
	w.screenshot("try2")
}
