// Package console serves the web pages for people who do not program, below /console.
//
// The console is a client of the REST API of the same program. A page makes calls with the package client, and the API answers them
// in this process for the user who has signed in. So each action of the console is an operation of the API, with the same scopes,
// bounds and errors. The drawer "As API call" of each page shows the calls that were made for it.
//
// html/template draws the pages, which work without a script; htmx and a few modules of ours add comfort. Nothing is loaded from
// elsewhere, and the Content-Security-Policy allows neither inline scripts nor inline styles.
//
// This package has sign-in, the menu and the files that pages load. Package frame has the page itself: forms, times, calls and streams.
// Each section has the pages of its subject: campaigns, calendar, people, activity and system. Package axis draws time axes. No package
// of the console has SQL. Only users and their sessions are not read over the API.
package console
