package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client makes calls to one installation of sendquota, with one API key. Several goroutines can use it at the
// same time.
type Client struct {
	API

	address string // without a slash at its end
	key     string
	config  Config
}

// Config configures a client. Its zero value is useful.
type Config struct {
	// HTTP sends the requests. By default it is a client of its own, without a time-out: contexts bound the calls. A
	// client that follows redirects sends the key to other servers.
	HTTP *http.Client

	// Retries is the number of retries of a call that can be repeated safely: 0 means 4, a negative number none.
	Retries int

	// FirstPause is the approximate pause before the first retry: 0 means 200 ms. It doubles up to LongestPause, where 0
	// means 10 s. A Retry-After of the API that is longer than LongestPause ends the call.
	FirstPause, LongestPause time.Duration
}

// New returns a client for the API at an address such as https://api.example.com, with an API key. It sends nothing.
func New(address, key string, c Config) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("the address of the API is %q: it must be a URL such as https://api.example.com", address)
	}
	if key = strings.TrimSpace(key); key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the API key must be printable, and not empty")
	}
	if c.HTTP == nil {
		c.HTTP = &http.Client{
			Transport:     http.DefaultTransport.(*http.Transport).Clone(),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	if c.Retries == 0 {
		c.Retries = 4
	}
	if c.FirstPause == 0 {
		c.FirstPause = 200 * time.Millisecond
	}
	if c.LongestPause == 0 {
		c.LongestPause = 10 * time.Second
	}
	made := &Client{address: strings.TrimSuffix(address, "/"), key: key, config: c}
	made.API = apiOf(made)
	return made, nil
}
