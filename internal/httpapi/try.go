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

// Scalar, unmodified, and what sets it up for us. No folder is inside of vendor: a module that is downloaded lacks those.
//
//go:embed vendor static
var tryFiles embed.FS

var tryAssets = sync.OnceValue(func() *assets.Files {
	f, err := assets.New("/docs/", tryFiles)
	if err != nil {
		panic(fmt.Errorf("the files of /docs/try: %w", err)) // at boot, not when one is asked for
	}
	return f
})

// tryView is the page around Scalar.
type tryView struct{ Title, Nonce, Start, Scalar, Open string }

// tryPage serves /docs/try, in which people send requests to this API with a key of theirs: Scalar, which is told to ask
// nobody else, and which the browser keeps from it.
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
