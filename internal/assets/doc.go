// Package assets serves the scripts and style sheets that pages load: each at a path that names its content, so that
// browsers keep it. It also checks the files of others, which stand in folders called vendor, unmodified: the file
// assets.lock beside them names the npm package, the version and the hash of each. `make assets` fetches them.
//
// It is no file server: it serves what is embedded in the program, and knows each file before the first request.
package assets
