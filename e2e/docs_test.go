package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestDocs_Read: the reading page, in a browser.
func TestDocs_Read(t *testing.T) {
	allOnly(t)
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

// TestDocs_Pictures: docs/console.md shows each picture that the stories take, once, and no other one.
func TestDocs_Pictures(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/console.md")
	testenv.Check(t, err)
	var shown []string
	for _, found := range regexp.MustCompile(`!\[[^\]]+\]\((console/[^)]+)\)`).FindAllStringSubmatch(string(text), -1) {
		shown = append(shown, filepath.Join("..", "docs", found[1]))
	}
	slices.Sort(shown)
	taken, err := filepath.Glob("../docs/console/*.png")
	testenv.Check(t, err)
	if !slices.Equal(shown, taken) {
		t.Errorf("shown are\n%s\ntaken are\n%s", strings.Join(shown, "\n"), strings.Join(taken, "\n"))
	}
	stories, err := filepath.Glob("*_test.go")
	testenv.Check(t, err)
	var all strings.Builder
	for _, path := range stories {
		story, err := os.ReadFile(path)
		testenv.Check(t, err)
		all.Write(story)
	}
	for _, picture := range taken {
		name := strconv.Quote(strings.TrimSuffix(filepath.Base(picture), ".png"))
		if !strings.Contains(all.String(), "("+name) && !strings.Contains(all.String(), ": "+name) {
			t.Errorf("no story takes %s", picture)
		}
	}
}

// TestDocs_Try: Scalar shows our operations and sends a request with a key, which it does not keep.
func TestDocs_Try(t *testing.T) {
	allOnly(t)
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

// openRequest opens the dialog for sending a request. Scalar draws the page in steps, and moves and replaces elements:
// so it presses the button until that has an effect.
func openRequest(w *window) {
	w.t.Helper()
	button := find("[id$='tag/keys/GET/v1/keys'] button", "Test Request")
	w.until(find(tokenField) + " || (" + button + "?.click(), false)")
	w.shown(tokenField)
}
