package console

import (
	"github.com/sendquota/sendquota/internal/console/frame"
)

// signInRoom has the pages for signing in, which [SignIn] mounts.
var signInRoom = frame.Room{
	Templates: templatesOf("signin"),
}
