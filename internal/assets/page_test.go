package assets

import "testing"

func TestAcceptsGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "deflate, GZIP;q=0.5": true, "gzip;q=0": false, "gzip; q=0.000, *": false, "*": true, "br": false, "identity, *;q=0": false,
	} {
		if got := acceptsGzip(map[string][]string{"Accept-Encoding": {header}}); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
}
