//go:build !failpoint

package failpoint

// Hit marks a point. In a program built without the tag "failpoint" it does nothing.
func Hit(Point) {}
