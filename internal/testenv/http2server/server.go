// Package http2server is an HTTP/2 server for tests that sends exactly the frames that a test wants. The server of
// net/http can neither name the last stream of a GOAWAY, nor refuse a stream, nor change its settings.
package http2server

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"golang.org/x/net/http2"
)

// Server is the server. Its fields are set before it gets a connection.
type Server struct {
	URL         string // after [Listen], as the next two
	Certificate *x509.Certificate
	Roots       *x509.CertPool // for clients to verify it

	// Settings are its first ones.
	Settings []http2.Setting

	// IgnorePings leaves pings without an answer.
	IgnorePings bool

	// Greet is called after the first settings of each connection. Nil: nothing.
	Greet func(*Conn)

	// Handle gets each request when the whole of it has been read, one after
	// another for each connection. Nil: nothing is answered.
	Handle func(Request)

	mu       sync.Mutex
	conns    []*Conn
	requests []Request
}

// Listen starts a server on loopback, over TLS.
func Listen(t testing.TB, handle func(Request), settings ...http2.Setting) *Server {
	t.Helper()
	certified := httptest.NewUnstartedServer(http.NotFoundHandler())
	certified.Config.ErrorLog = log.New(io.Discard, "", 0)
	certified.StartTLS()
	certified.Close()
	s := &Server{Settings: settings, Handle: handle, Certificate: certified.Certificate(), Roots: x509.NewCertPool()}
	s.Roots.AddCert(s.Certificate)
	listener, err := tls.Listen("tcp4", "127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	s.URL = "https://" + listener.Addr().String()
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { s.Serve(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		for _, c := range s.Conns() {
			c.Close()
		}
		running.Wait()
	})
	return s
}

// Serve speaks HTTP/2 on a connection until its end.
func (s *Server) Serve(conn net.Conn) {
	c := s.add(conn)
	defer c.ended.Store(true)
	defer conn.Close()
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(conn, preface); err != nil || string(preface) != http2.ClientPreface {
		return
	}
	c.WriteSettings(s.Settings...)
	if s.Greet != nil {
		s.Greet(c)
	}
	for c.next() == nil {
	}
}

func (s *Server) add(conn net.Conn) *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := newConn(s, len(s.conns), conn)
	s.conns = append(s.conns, c)
	return c
}

func (s *Server) got(r Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	if s.Handle != nil {
		s.Handle(r)
	}
}

// Conns returns the connections in the order of their arrival.
func (s *Server) Conns() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Conn(nil), s.conns...)
}

// Requests returns the requests that were read to their end.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}
