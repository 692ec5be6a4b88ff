//go:build !failpoint

package failpoint

// Hit marks a point. In this program it is nothing.
func Hit(Point) {}

// Off reports whether a gate is switched off. In this program none can be.
func Off(Gate) bool { return false }
