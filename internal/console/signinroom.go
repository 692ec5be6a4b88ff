package console

// signInRoom has the pages for signing in, which [SignIn] mounts.
var signInRoom = room{
	Templates: templatesOf("signin"),
}
