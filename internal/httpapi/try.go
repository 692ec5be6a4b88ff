package httpapi

import (
	"bytes"
	"crypto/rand"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"sync"

	"github.com/sendquota/sendquota/internal/assets"
	"github.com/sendquota/sendquota/internal/rest"
)

//go:embed try.html
var tryTemplate string

// Scalar, unmodified, and our setup. vendor has no folders, because a downloaded module lacks them.
//
//go:embed vendor static
var tryFiles embed.FS

var tryAssets = sync.OnceValue(func() *assets.Files {
	f, err := assets.New("/docs/", tryFiles)
	if err != nil {
		panic(fmt.Errorf("the files of /docs/try: %w", err)) // at boot, not at the first request
	}
	return f
})

// tryView is the page around Scalar.
type tryView struct{ Title, Nonce, Start, Scalar, Open string }

// tryPage serves /docs/try, a page for sending requests to this API with the user's own key. It runs Scalar, which is configured to
// send requests to this server only; the browser enforces that.
func tryPage(a *rest.API) {
	files := tryAssets()
	for _, path := range files.Paths() {
		a.Page(path, files)
	}
	t := template.Must(template.New("try").Parse(tryTemplate))
	a.Page("/docs/try", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		v := tryView{Title: a.Document().Info.Title, Nonce: rand.Text()}
		for name, path := range map[string]*string{"try-start.js": &v.Start, "scalar.js": &v.Scalar, "try-open.js": &v.Open} {
			*path, _ = files.Path(name) // a test loads the page
		}
		var page bytes.Buffer
		_ = t.Execute(&page, v) // a buffer takes everything
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", rest.ScriptAndStyle(v.Nonce))
		h.Set("Cache-Control", "no-store") // each answer has its own nonce
		_, _ = w.Write(page.Bytes())
	}))
}
