package httpapi

// idempotencyKey reads the header: 1 to 255 printable bytes of ASCII.
func (c *call) idempotencyKey(bad *fieldErrors) string {
	const location = "header.Idempotency-Key"
	given := c.r.Header["Idempotency-Key"]
	switch {
	case len(given) == 0:
		return ""
	case len(given) > 1:
		bad.add(location, "is given more than once", shown(given[1]))
	case len(given[0]) == 0 || len(given[0]) > 255:
		bad.add(location, "must have 1 to 255 bytes", shown(given[0]))
	}
	if plain := printableASCII(given[0]); plain != given[0] {
		bad.add(location, "must be printable ASCII", shown(plain))
	}
	return given[0]
}

// printableASCII makes bytes of any kind fit for a fault.
func printableASCII(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] < ' ' || b[i] > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}
