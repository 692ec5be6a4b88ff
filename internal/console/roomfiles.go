package console

import (
	"embed"
	"io/fs"
)

//go:embed */templates
var roomFiles embed.FS

// templatesOf returns the templates of a room.
func templatesOf(room string) fs.FS {
	sub, err := fs.Sub(roomFiles, room)
	if err != nil {
		panic(err) // the name is valid
	}
	return sub
}
