package config

import (
	"net/url"
	"regexp"
)

// shaped reads a string of a certain form.
func shaped(to *string, shape *regexp.Regexp, form string) reader {
	return reader{into: func(p place) {
		s, ok := p.text()
		if ok && !shape.MatchString(s) {
			p.fault("must be %s", form)
			return
		}
		*to = s
	}}
}

// providerURL reads where a provider is found, which holds no secret.
func providerURL(to *string) reader {
	return reader{into: func(p place) {
		s, ok := p.text()
		if !ok {
			return
		}
		u, err := url.Parse(s)
		switch {
		case checkURL(s) != "" || err != nil:
			p.hidden = true
			p.fault("%s", checkURL(s))
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			p.hidden = true
			p.fault("must have no user, no query and no fragment")
		default:
			*to = s
		}
	}}
}

// filePath reads the path of a file, which is opened by others.
func filePath(to *string) reader {
	return reader{into: func(p place) {
		s, ok := p.text()
		if ok && s == "" {
			p.fault("must be the path of a file")
			return
		}
		*to = s
	}}
}
