package console

import (
	"embed"
	"fmt"

	"github.com/sendquota/sendquota/internal/assets"
)

// The files of others, unmodified, and ours. No folder is inside of vendor: a module that is downloaded lacks those.
//
//go:embed vendor static
var files embed.FS

// newAssets serves /console/vendor/… and /console/static/…; its Path is the function asset of the templates.
func newAssets() *assets.Files {
	f, err := assets.New("/console/", files)
	if err != nil {
		panic(fmt.Errorf("the files of the console: %w", err)) // at boot, not when one is asked for
	}
	return f
}
