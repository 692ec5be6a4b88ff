// Package console shows sendquota to people who do not program: pages in a browser, each a client of our own REST API.
package console
