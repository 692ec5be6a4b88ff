package devstack

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

// Chromium returns the path of a Chromium for tests of pages. The environment variable CHROMIUM may name it; otherwise
// it is found or installed like servers are. It uses only the fields of c for finding and progress.
func Chromium(ctx context.Context, c Config) (path string, err error) {
	c = c.prepared()
	s := service{
		name:     "Chromium",
		variable: "CHROMIUM",
		program:  "chromium",
		apt:      "chromium-headless-shell", // needs no display, and no libraries of one
		brew:     "chromium",
		binary:   c.searchPaths.chromiumBin,
	}
	path, missing := s.binary()
	if missing == nil {
		return path, nil
	}
	if err := c.install(ctx, s); err != nil {
		return "", notFound(s, attempts{missing, err})
	}
	return s.binary()
}

// chromiumBin returns the path of Chromium or of what is built from it.
func (p *searchPaths) chromiumBin() (string, error) {
	if path := os.Getenv("CHROMIUM"); path != "" {
		return exec.LookPath(path)
	}
	names := []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome"}
	for _, path := range append(names, p.chromium...) {
		if path, err := exec.LookPath(path); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no chromium in PATH or the usual folders")
}
