// Package console serves the web pages for people who do not program, below /console.
//
// The console is a client of the REST API of the same program: a page makes calls with the package client, and [inProcess] has
// the API answer them for the user who has signed in. So each action of the console is an operation of the API, under the same
// scopes, bounds and errors, and the drawer "As API call" of each page shows the calls that were made for it.
//
// Pages are drawn by html/template and work without a script; htmx and a few modules of ours add comfort. Nothing is loaded from
// elsewhere, and the Content-Security-Policy allows neither inline scripts nor inline styles.
//
// The package has no SQL. Only users and their sessions are not read over the API.
package console
