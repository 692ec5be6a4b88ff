// Package outbound makes the requests that leave the house: to providers, and to
// the endpoints of tenants. It holds what all of them need to be safe.
//
//   - A request is sent at most once: no redirect is followed, no proxy asked,
//     nothing repeated unasked. Whether it can have been processed is known.
//   - It goes to public addresses only, whatever form the URL gives an address
//     and whatever DNS says at the time, unless the operator allows others.
//   - It ends in time, does not begin too late, and reads no endless answer.
//   - The text of a failure comes from a fixed list. It quotes nothing that came
//     from outside, no URL and no secret.
//
// Over HTTP/2 all requests to a server share one connection, which is kept: see
// link. A wire reads in its frames whether the server has processed a request
// that got no answer. Over HTTP/1.1 each request has a connection for itself.
//
// What an answer means is for the caller to say.
package outbound
