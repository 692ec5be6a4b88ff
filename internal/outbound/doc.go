// Package outbound makes all outgoing requests: to providers, and to the endpoints of tenants. It makes them safe:
//
//   - A request is sent at most once: no redirect is followed, no proxy used, and
//     nothing repeated implicitly. The caller learns whether it may have been processed.
//   - It goes to public addresses only, whatever form the URL gives an address
//     and whatever DNS answers at the time, unless the operator allows others.
//   - It ends in time, does not begin too late, and reads no endless answer.
//   - The text of a failure comes from a fixed list. It quotes nothing from
//     outside, no URL and no secret.
//
// Over HTTP/2 all requests to a server share one connection, which is kept: see link. A wire reads in its frames
// whether the server has processed a request without an answer. Over HTTP/1.1 each request has a connection for itself.
//
// The caller interprets the answer.
package outbound
