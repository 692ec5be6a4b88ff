package channel

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// connections returns how many connections were opened, and how many at a time at most.
func (s *mailServer) connections() (all, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns), s.most
}

// drop closes all connections.
func (s *mailServer) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.Close()
	}
}

// sendTo sends a mail and wants an outcome.
func sendTo(t *testing.T, e *Email, to string, want push.Outcome) Result {
	t.Helper()
	p := emailPush(`{"body":"x"}`)
	p.To = to
	r := e.Send(t.Context(), p, 1)
	if r.Outcome != want {
		t.Errorf("to %s: %+v, want %s", to, r, want)
	}
	return r
}

// TestEmail_FewConnections: a hundred mails at once use at most four connections, and each arrives once.
func TestEmail_FewConnections(t *testing.T) {
	t.Parallel()
	server := newMailServer(t, mailSetup{})
	e := newTestEmail(t, server, EmailConfig{Connection: testConnection(time.Minute)})
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			p := emailPush(`{"body":"x"}`)
			p.ID = uuid.New()
			if r := e.Send(t.Context(), p, 1); r.Outcome != push.Delivered {
				t.Errorf("%+v", r)
			}
		})
	}
	all.Wait()
	if opened, most := server.connections(); opened > mostMailConns || most > mostMailConns {
		t.Errorf("%d connections, %d at a time", opened, most)
	}
	ids := map[string]int{}
	for _, m := range server.messages() {
		_, rest, _ := strings.Cut(m.data, "Message-ID: <")
		id, _, _ := strings.Cut(rest, "@")
		ids[id]++
		if m.user != markUser || len(m.all) != 1 {
			t.Errorf("a mail of %q to %q", m.user, m.all)
		}
	}
	if len(ids) != 100 || len(server.messages()) != 100 {
		t.Errorf("%d messages with %d ids", len(server.messages()), len(ids))
	}
}

// TestEmail_ManyOverOne: a connection serves a hundred mails.
func TestEmail_ManyOverOne(t *testing.T) {
	t.Parallel()
	server := newMailServer(t, mailSetup{})
	e := newTestEmail(t, server, EmailConfig{Connection: testConnection(time.Minute)})
	for i := range mailsPerConn + 1 {
		sendTo(t, e, testMailbox, push.Delivered)
		if opened, most := server.connections(); opened != 1+i/mailsPerConn || most != 1 {
			t.Fatalf("after %d mails: %d connections, %d at a time", i+1, opened, most)
		}
	}
}

// TestEmail_LostWhileKept: if a kept connection is gone, or does not take another mail, the mail goes through a new one, as if
// nothing had happened.
func TestEmail_LostWhileKept(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{"", mailDrops, mailResets, mailHangs, "421 4.4.2 idle for too long", "451 4.7.0 too many messages", "550 5.7.1 no more", "what"} {
		t.Run(strings.Trim(reply, "\x00"), func(t *testing.T) {
			t.Parallel()
			script := mailScript{}
			if reply != "" {
				script["MAIL 2"] = reply
			}
			server := newMailServer(t, mailSetup{script: script})
			e := newTestEmail(t, server, EmailConfig{Connection: testConnection(2 * brief)})
			sendTo(t, e, testMailbox, push.Delivered)
			if reply == "" {
				server.drop()
			}
			sendTo(t, e, testMailbox, push.Delivered)
			if opened, _ := server.connections(); opened != 2 || len(server.messages()) != 2 {
				t.Errorf("%d connections, %d messages", opened, len(server.messages()))
			}
		})
	}
}

// TestEmail_LostInUse: after the server has accepted MAIL, a kept connection that fails decides the outcome, as a new one does.
// Nothing is sent again.
func TestEmail_LostInUse(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]push.Outcome{"RCPT 2": push.Refused, "DATA 2": push.Refused, "dot 2": push.Unknown} {
		for _, reply := range []string{mailDrops, mailResets, "what"} {
			t.Run(step+" "+strings.Trim(reply, "\x00"), func(t *testing.T) {
				t.Parallel()
				server := newMailServer(t, mailSetup{script: mailScript{step: reply}})
				e := newTestEmail(t, server, EmailConfig{Connection: testConnection(ample)})
				sendTo(t, e, testMailbox, push.Delivered)
				if r := sendTo(t, e, testMailbox, want); !r.Down || r.Final {
					t.Errorf("%+v", r)
				}
				if opened, _ := server.connections(); opened != 1 {
					t.Errorf("%d connections", opened)
				}
				sendTo(t, e, testMailbox, push.Delivered)
				want := map[push.Outcome]int{push.Refused: 2, push.Unknown: 3}[want]
				if opened, _ := server.connections(); opened != 2 || len(server.messages()) != want {
					t.Errorf("%d connections, %d messages, want 2 and %d", opened, len(server.messages()), want)
				}
			})
		}
	}
}

// TestEmail_KeptAfterRefusal: a refused mail leaves the connection fit for the next one, which gets nothing of it.
func TestEmail_KeptAfterRefusal(t *testing.T) {
	t.Parallel()
	for step, reply := range map[string]string{"RCPT 1": "550 5.1.1 unknown", "DATA 1": "451 4.3.0 later", "dot 1": "554 5.6.0 no"} {
		server := newMailServer(t, mailSetup{script: mailScript{step: reply}})
		e := newTestEmail(t, server, EmailConfig{Connection: testConnection(ample)})
		sendTo(t, e, "anna@example.com", push.Refused)
		sendTo(t, e, "ben@example.com", push.Delivered)
		got := server.messages()
		last := got[len(got)-1]
		if opened, _ := server.connections(); opened != 1 || !slices.Equal(last.all, []string{"TO:<ben@example.com>"}) {
			t.Errorf("%s: %d connections, the last mail went to %q", step, opened, last.all)
		}
	}
}

// TestEmail_CloseIdle: CloseIdle says goodbye on kept connections at once, and on others after their mail.
func TestEmail_CloseIdle(t *testing.T) {
	t.Parallel()
	server := newMailServer(t, mailSetup{})
	e := newTestEmail(t, server, EmailConfig{Connection: testConnection(ample)})
	open := func() int { server.mu.Lock(); defer server.mu.Unlock(); return server.open }
	sendTo(t, e, testMailbox, push.Delivered)
	if open() != 1 {
		t.Errorf("%d connections are kept", open())
	}
	e.CloseIdle()
	testenv.Until(t, time.Millisecond, "the connection is closed", func() bool { return open() == 0 })
	c := &mailConn{round: e.pool.round()}
	conn, err := e.dial(t.Context(), "tcp", e.address)
	if err != nil {
		t.Fatal(err)
	}
	c.line = newMailLine(t.Context(), conn)
	if d := e.open(t.Context(), c, "shop@example.com"); d.err != nil {
		t.Fatal(d.err)
	}
	e.CloseIdle()
	e.settle(c, c.deliver(t.Context(), outgoing{to: []string{testMailbox}, text: []byte("Subject: x\r\n\r\nx\r\n")}).err)
	testenv.Until(t, time.Millisecond, "the other connection is closed", func() bool { return open() == 0 })
	if n := len(server.messages()); n != 2 {
		t.Errorf("%d messages", n)
	}
}

// TestEmail_AllBusy: a mail that waited in vain for a connection was not sent. The server is down if it has answered no other
// mail meanwhile.
func TestEmail_AllBusy(t *testing.T) {
	t.Parallel()
	for _, answers := range []bool{false, true} {
		e := sendingEmail(t, EmailConfig{})
		e.cfg.Timeout = brief / 10
		for range mostMailConns {
			if err := e.pool.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan struct{})
		var answering sync.WaitGroup
		if answers {
			answering.Go(func() {
				for tick := time.NewTicker(time.Millisecond); ; e.pool.answers.Add(1) {
					select {
					case <-tick.C:
					case <-done:
						return
					}
				}
			})
		}
		r := sendTo(t, e, testMailbox, push.Refused)
		if r.Down == answers || r.Error != "not sent: all connections to the mail server were busy" || r.Final {
			t.Errorf("answers: %t: %+v", answers, r)
		}
		close(done)
		answering.Wait()
	}
}
