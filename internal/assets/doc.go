// Package assets serves the scripts and style sheets of pages, each at a path that contains the hash of its content, so
// that browsers cache it. It also verifies third-party files. They are stored unmodified in folders called vendor, and
// the file assets.lock there lists the npm package, the version and the hash of each. `make assets` fetches them.
//
// It is no file server: it serves files embedded in the program, and knows each file before the first request.
package assets
