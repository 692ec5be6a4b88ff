package channel

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Behaviors of a mail server instead of a reply.
const (
	mailHangs  = "\x00hang"
	mailResets = "\x00reset"
	mailDrops  = "\x00drop"
	mailEchoes = "\x00echo" // replies with all that it was sent
)

// mailScript has the replies of a mail server at some steps. At the other steps it replies as a server that takes
// everything. The steps are greeting, STARTTLS, dot, and the commands; "MAIL 2" is that step of the second message of a
// connection.
type mailScript map[string]string

// mailServer is an SMTP server on loopback that speaks EHLO, STARTTLS, AUTH
// PLAIN and LOGIN, MAIL, RCPT, DATA, RSET and QUIT.
type mailServer struct {
	mailSetup
	listener net.Listener
	cert     tls.Certificate
	roots    *x509.CertPool
	stop     chan struct{}
	waiting  atomic.Int64 // connections that hang

	mu    sync.Mutex
	conns []net.Conn
	most  int // connections at a time
	open  int
	got   []letter
}

// mailSetup configures a mail server.
type mailSetup struct {
	script   mailScript
	ehlo     []string // what it offers; nil: all that it can
	implicit bool     // TLS from the first byte
}

// letter is the data of one message, and of the connection before it.
type letter struct {
	quit       bool // the client said goodbye; not noted after a whole message
	secure     bool
	user, pass string
	from, to   string   // to: the first recipient
	all        []string // the recipients that were taken
	commands   []string // the words that begin them
	data       string
	whole      bool // its end came
}

func newMailServer(t *testing.T, setup mailSetup) *mailServer {
	t.Helper()
	if setup.ehlo == nil {
		setup.ehlo = []string{"8BITMIME", "SMTPUTF8", "STARTTLS", "AUTH PLAIN LOGIN"}
	}
	s := &mailServer{mailSetup: setup, stop: make(chan struct{})}
	s.cert, s.roots = testCertificate(t)
	var err error
	if s.listener, err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := s.listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.open++
			s.most = max(s.most, s.open)
			s.mu.Unlock()
			running.Go(func() { s.serve(c.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		close(s.stop)
		s.listener.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		running.Wait()
	})
	return s
}

func (s *mailServer) port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// messages returns the messages that came to their end.
func (s *mailServer) messages() []letter {
	return slices.DeleteFunc(s.all(), func(m letter) bool { return !m.whole })
}

// all returns all that came, one for each connection that has ended or handed
// a message over.
func (s *mailServer) all() []letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// session is one connection.
type session struct {
	*mailServer
	raw  *net.TCPConn
	conn net.Conn
	in   *bufio.Reader
	sent bytes.Buffer // all that the client said
	mail letter
	nth  int // of the message
	kept bool
}

func (s *mailServer) serve(raw *net.TCPConn) {
	c := &session{mailServer: s, raw: raw, conn: raw}
	defer func() {
		s.mu.Lock()
		s.open--
		s.mu.Unlock()
		c.conn.Close()
	}()
	defer c.keep()
	if s.implicit && !c.secure() {
		return
	}
	c.in = bufio.NewReader(c.conn)
	if !c.reply("greeting", "220 mail.example ESMTP") {
		return
	}
	for c.command() {
	}
}

func (c *session) keep() {
	if c.kept {
		return
	}
	c.kept = true
	c.mu.Lock()
	c.got = append(c.got, c.mail)
	c.mu.Unlock()
}

func (c *session) secure() bool {
	secured := tls.Server(c.conn, &tls.Config{Certificates: []tls.Certificate{c.cert}})
	if secured.Handshake() != nil {
		return false
	}
	c.conn, c.in, c.mail.secure = secured, bufio.NewReader(secured), true
	return true
}

// reply sends the script's reply for the step, or else the usual one. It reports whether the session continues.
func (c *session) reply(step, usual string) bool {
	text, scripted := c.script[step]
	if one, ok := c.script[fmt.Sprint(step, " ", c.nth)]; ok { // of one message of a connection
		text, scripted = one, ok
	}
	if !scripted {
		text = usual
	}
	text, wait, _ := strings.Cut(text, "\x00")
	switch wait {
	case "hang":
		io.WriteString(c.conn, text)
		c.waiting.Add(1)
		<-c.stop
		return false
	case "reset":
		c.raw.SetLinger(0)
		c.raw.Close()
		return false
	case "drop":
		return false
	case "echo":
		io.WriteString(c.conn, text+c.sent.String()+"\r\n")
		return false
	}
	_, err := io.WriteString(c.conn, text+"\r\n")
	return err == nil && (!scripted || step != "greeting")
}

func (c *session) line() (string, bool) {
	line, err := c.in.ReadString('\n')
	c.sent.WriteString(line)
	return strings.TrimSuffix(line, "\r\n"), err == nil
}

// command reads a command and replies to it. It reports whether the
// conversation goes on.
func (c *session) command() bool {
	line, ok := c.line()
	if !ok {
		return false
	}
	word, rest, _ := strings.Cut(line, " ")
	c.mail.commands = append(c.mail.commands, word)
	switch word {
	case "EHLO":
		lines := "250-mail.example greets " + rest
		offered := c.ehlo
		if c.mail.secure {
			offered = slices.DeleteFunc(slices.Clone(offered), func(s string) bool { return s == "STARTTLS" })
		}
		for i, ext := range offered {
			sep := "-"
			if i == len(offered)-1 {
				sep = " "
			}
			lines += "\r\n250" + sep + ext
		}
		return c.reply("EHLO", lines)
	case "STARTTLS":
		return c.reply("STARTTLS", "220 go ahead") && (c.script["STARTTLS"] != "" || c.secure())
	case "AUTH":
		return c.auth(rest)
	case "RSET":
		return c.reply("RSET", "250 2.0.0 Ok")
	case "MAIL":
		if c.nth++; c.kept { // another message
			c.kept, c.mail = false, letter{secure: c.mail.secure, user: c.mail.user, pass: c.mail.pass, commands: []string{"MAIL"}}
		}
		c.mail.from, c.mail.to, c.mail.all = rest, "", nil
		return c.reply("MAIL", "250 2.1.0 Ok")
	case "RCPT":
		step := "RCPT"
		if c.script[line] != "" { // of one recipient
			step = line
		}
		if c.mail.to == "" {
			c.mail.to = rest
		}
		if c.script[step] == "" || c.script[step][0] == '2' {
			c.mail.all = append(c.mail.all, rest)
		}
		return c.reply(step, "250 2.1.5 Ok")
	case "DATA":
		reply := c.script["DATA"] + c.script[fmt.Sprint("DATA ", c.nth)]
		return c.reply("DATA", "354 End data with <CR><LF>.<CR><LF>") && (strings.HasPrefix(reply, "5") || strings.HasPrefix(reply, "4") || c.data())
	case "QUIT":
		c.mail.quit = true
		return c.reply("QUIT", "221 2.0.0 Bye") && false
	}
	return c.reply(word, "502 5.5.2 "+word+" is not known")
}

func (c *session) auth(rest string) bool {
	ask := func(prompt string) string {
		fmt.Fprintf(c.conn, "334 %s\r\n", base64.StdEncoding.EncodeToString([]byte(prompt)))
		line, _ := c.line()
		text, _ := base64.StdEncoding.DecodeString(line)
		return string(text)
	}
	switch way, initial, _ := strings.Cut(rest, " "); way {
	case "PLAIN":
		text, _ := base64.StdEncoding.DecodeString(initial)
		parts := strings.Split(string(text)+"\x00\x00\x00", "\x00")
		c.mail.user, c.mail.pass = parts[1], parts[2]
	case "LOGIN":
		c.mail.user, c.mail.pass = ask("Username:"), ask("Password:")
	}
	return c.reply("AUTH", "235 2.7.0 Authentication successful")
}

func (c *session) data() bool {
	var text strings.Builder
	for {
		line, ok := c.line()
		if !ok {
			return false
		}
		if line == "." {
			break
		}
		text.WriteString(strings.TrimPrefix(line, ".") + "\r\n")
	}
	c.mail.data, c.mail.whole = text.String(), true
	c.keep()
	return c.reply("dot", "250 2.0.0 Ok: queued as 4Z")
}
