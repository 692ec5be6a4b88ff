package rest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

// harden sets the headers that every answer bears. Nothing here is to be shown inside of other pages, run, or taken for
// something else; what is the tenant's is to be kept nowhere. Strict-Transport-Security is for whoever ends TLS.
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

// They are shared by all answers: nobody changes them.
var (
	nosniff     = []string{"nosniff"}
	showNothing = []string{"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"}
	deny        = []string{"DENY"}
	noReferrer  = []string{"no-referrer"}
	sameOrigin  = []string{"same-origin"}
	noStore     = []string{"no-store"}
)

// styleOnly is the policy of a page that may show itself with its one style sheet, which it has inside, and nothing
// else.
func styleOnly(page []byte) string {
	_, rest, _ := bytes.Cut(page, []byte("<style>"))
	style, _, _ := bytes.Cut(rest, []byte("</style>"))
	hash := sha256.Sum256(style)
	return "style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; " + showNothing[0]
}

// ScriptAndStyle is the policy of a page that runs our scripts, asks this server, and makes style sheets that bear the nonce.
func ScriptAndStyle(nonce string) string {
	return "script-src 'self'; style-src 'nonce-" + nonce + "'; connect-src 'self'; img-src 'self' data:; " + showNothing[0]
}
