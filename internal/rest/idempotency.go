package rest

// IdempotencyKey reads the header: 1 to 255 printable bytes of ASCII.
func (c *Call) IdempotencyKey(bad *FieldErrors) string {
	const location = "header.Idempotency-Key"
	given := c.Request.Header["Idempotency-Key"]
	switch {
	case len(given) == 0:
		return ""
	case len(given) > 1:
		bad.Add(location, "is given more than once", Shown(given[1]))
	case len(given[0]) == 0 || len(given[0]) > 255:
		bad.Add(location, "must have 1 to 255 bytes", Shown(given[0]))
	}
	if plain := printableASCII(given[0]); plain != given[0] {
		bad.Add(location, "must be printable ASCII", Shown(plain))
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
