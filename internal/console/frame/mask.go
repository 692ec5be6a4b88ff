package frame

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// masked masks the addresses in an answer of the API, for roles that must not see them. Answers other than JSON have no addresses.
func masked(answer *http.Response) {
	if media := answer.Header.Get("Content-Type"); !strings.Contains(media, "json") {
		return
	}
	from, to := io.Pipe()
	plain := answer.Body
	go func() {
		err := maskJSON(to, plain)
		_ = plain.Close()
		_ = to.CloseWithError(err)
	}()
	answer.Body = from
	answer.Header.Del("Content-Length")
}

// maskJSON copies JSON values and masks addresses: strings in a member "to", all strings in "addresses", and
// the addresses of a list of suppressions.
func maskJSON(w io.Writer, r io.Reader) error {
	in, out := jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)), jsontext.NewEncoder(w, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		token, err := in.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if token.Kind() == '"' && isAddress(in) {
			token = jsontext.String(mask(token.String()))
		}
		if err := out.WriteToken(token); err != nil {
			return err
		}
	}
}

// isAddress reports whether the string that was just read is an address. In the audit log, "to" is a new value and not an address.
func isAddress(in *jsontext.Decoder) bool {
	kind, length := in.StackIndex(in.StackDepth())
	if kind == '{' && length%2 == 1 {
		return false // the name of a member
	}
	at := in.StackPointer()
	if strings.Contains(string(at), "/difference/") {
		return false
	}
	return at.LastToken() == "to" || at.Parent().LastToken() == "addresses" || at.LastToken() == "address" && strings.HasPrefix(string(at), "/suppressions/")
}

// mask keeps enough of an address to tell it from others: the first and last two characters, or the first letter and the host of an e-mail
// address.
func mask(address string) string {
	if name, host, ok := strings.Cut(address, "@"); ok && name != "" && !strings.ContainsAny(host, "@/:") && !strings.ContainsAny(name, "/:") {
		first, _ := utf8.DecodeRuneInString(name)
		return string(first) + "•••@" + host
	}
	letters := []rune(address)
	if len(letters) < 8 {
		return "•••"
	}
	return string(letters[:2]) + "•••" + string(letters[len(letters)-2:])
}
