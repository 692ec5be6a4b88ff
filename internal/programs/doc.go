// Package programs has the main functions of the two services. Two kinds of
// binaries share them: the programs of cmd/api and cmd/worker, and the sendquota
// of the image, which runs each of them under its name.
package programs

import "path/filepath"

// ByName returns the main function of the service with the name in the first
// word of a command line, or nil.
func ByName(word string) func() {
	switch filepath.Base(word) {
	case "api":
		return API
	case "worker":
		return Worker
	}
	return nil
}
