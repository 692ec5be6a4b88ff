package frame

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// masked has a role that is not to see addresses get answers of the API with what tells addresses apart, and no more. Answers that
// are no JSON have no addresses.
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

// maskJSON copies JSON values, one or many, and masks the addresses in them: a text that is called to, and each one in addresses.
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

// isAddress reports whether the text that was just read is the value of an address. The audit log has old and new values instead,
// which are no addresses.
func isAddress(in *jsontext.Decoder) bool {
	kind, length := in.StackIndex(in.StackDepth())
	if kind == '{' && length%2 == 1 {
		return false // it is the name of a member
	}
	at := in.StackPointer()
	if strings.Contains(string(at), "/difference/") {
		return false
	}
	return at.LastToken() == "to" || at.Parent().LastToken() == "addresses"
}

// mask keeps of an address what tells it from others: its first and its last two characters, and the host of an e-mail address.
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
