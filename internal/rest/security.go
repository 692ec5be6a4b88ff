package rest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

// harden sets the security headers of every answer: no answer may be framed, run, or taken for
// another type, and a tenant's data is never cached. The terminator of TLS sets Strict-Transport-Security.
func harden(h http.Header, path string) {
	h["X-Content-Type-Options"] = nosniff
	h["Content-Security-Policy"] = showNothing
	h["X-Frame-Options"] = deny
	h["Referrer-Policy"] = noReferrer
	h["Cross-Origin-Opener-Policy"] = sameOrigin
	h["Cross-Origin-Resource-Policy"] = sameOrigin
	if path == "/v1" || strings.HasPrefix(path, "/v1/") {
		h["Cache-Control"] = noStore
	}
}

// All answers share these values, which are never changed.
var (
	nosniff     = []string{"nosniff"}
	showNothing = []string{"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"}
	deny        = []string{"DENY"}
	noReferrer  = []string{"no-referrer"}
	sameOrigin  = []string{"same-origin"}
	noStore     = []string{"no-store"}
)

// styleOnly returns the policy of a page that may use its one inline style sheet and nothing
// else.
func styleOnly(page []byte) string {
	_, rest, _ := bytes.Cut(page, []byte("<style>"))
	style, _, _ := bytes.Cut(rest, []byte("</style>"))
	hash := sha256.Sum256(style)
	return "style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; " + showNothing[0]
}

// ScriptAndStyle returns the policy of a page that runs the server's scripts, sends requests to this server, and makes style sheets with the nonce.
func ScriptAndStyle(nonce string) string {
	return "script-src 'self'; style-src 'nonce-" + nonce + "'; connect-src 'self'; img-src 'self' data:; " + showNothing[0]
}
