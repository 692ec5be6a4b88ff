package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestDocs_Read: the reading page, in a browser.
func TestDocs_Read(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.StartAPI()
	w := openWindow(t, b.api)
	w.visit("/docs")
	w.screen("")
	w.tabTo("a[href='/docs/try']")
	w.press(kb.Enter)
	w.said("Powered by Scalar")
}

// TestDocs_Try: Scalar shows our operations and sends a request with a key, which it does not keep.
func TestDocs_Try(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.StartAPI()
	_, answer := b.call("GET", "/v1/keys", nil)
	id := answer["keys"].([]any)[0].(object)["id"].(string)

	w := openWindow(t, b.api)
	const listKeys = "/docs/try#tag/keys/GET/v1/keys"
	w.visit(listKeys)
	for _, operation := range []string{"List API keys", "Create an API key", "Revoke an API key"} {
		w.said(operation)
	}
	openRequest(w)
	w.fill(tokenField, b.Key)
	w.click("[role=dialog] button", "Send")
	w.said("200 OK")
	w.said(id)

	if kept := eval[string](w, "JSON.stringify([localStorage, sessionStorage, document.cookie])"); strings.Contains(kept, b.Key) {
		t.Errorf("the key is kept: %s", kept)
	}
	w.visit("/docs")
	w.visit(listKeys)
	openRequest(w)
	if key := eval[string](w, find(tokenField)+".value"); key != "" {
		t.Errorf("the key is there again: %s", key)
	}
}

const tokenField = "[role=dialog] input[placeholder=Token]"

// openRequest opens the dialog in which a request is sent. Scalar draws the page bit by bit, and moves and replaces what
// is there: so the button is pressed until that has an effect.
func openRequest(w *window) {
	w.t.Helper()
	button := find("[id$='tag/keys/GET/v1/keys'] button", "Test Request")
	w.until(find(tokenField) + " || (" + button + "?.click(), false)")
	w.shown(tokenField)
}
