// Package programs holds the main functions of the two services, which two kinds
// of binaries share: the programs of cmd/api and cmd/worker, and the sendquota of
// the image, which is each of them under its name.
package programs

import "path/filepath"

// ByName returns the main function of the service that the first word of a
// command line names, or nil.
func ByName(word string) func() {
	switch filepath.Base(word) {
	case "api":
		return API
	case "worker":
		return Worker
	}
	return nil
}
