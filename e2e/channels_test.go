package e2e

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

const channelsConfig = `
policy: {rules: []}
channels:
  sms: {type: sms, account_sid: AC1, auth_token: "${PUSH_SECRET}", from: "+4511111111", base_url: "https://WEB", allow_private_addresses: true}
  droid: {type: fcm, credentials_file: "DIR/fcm.json", base_url: "https://WEB", allow_private_addresses: true}
  phone: {type: apns, key_file: "DIR/apns.p8", key_id: ABCDE12345, team_id: ABCDE12345, topic: com.example.shop, base_url: "https://WEB", allow_private_addresses: true}
  email: {type: email, host: 127.0.0.1, port: MAILPORT, tls: tls, from: "Shop <shop@example.com>", allow_private_addresses: true}
delivery: {lease: 20s}
`

// phones are the providers that speak HTTP. A device whose token ends in 0 is
// gone.
func phones(t *testing.T) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2010-04-01/Accounts/AC1/Messages.json", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"sid":"SM-%s"}`, r.FormValue("To"))
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"access_token":"t","expires_in":3600}`) })
	mux.HandleFunc("POST /v1/projects/p/messages:send", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"name":"projects/p/messages/1"}`) })
	mux.HandleFunc("POST /3/device/{token}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Apns-Id", r.Header.Get("Apns-Id"))
		if strings.HasSuffix(r.PathValue("token"), "0") {
			w.WriteHeader(http.StatusGone)
			fmt.Fprint(w, `{"reason":"Unregistered"}`)
		}
	})
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// postOffice is a mail server over TLS that takes everything.
func postOffice(t *testing.T, cert tls.Certificate) (port string) {
	listener, err := tls.Listen("tcp4", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	testenv.Check(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go takeMail(c)
		}
	}()
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	return port
}

func takeMail(c net.Conn) {
	defer c.Close()
	fmt.Fprint(c, "220 post.example\r\n")
	within := false
	for in := bufio.NewScanner(c); in.Scan(); {
		switch {
		case within && in.Text() == ".":
			within = false
			fmt.Fprint(c, "250 2.0.0 Ok: queued as 4Z\r\n")
		case within:
		case in.Text() == "DATA":
			within = true
			fmt.Fprint(c, "354 go on\r\n")
		default:
			fmt.Fprint(c, "250 Ok\r\n")
		}
	}
}

// credentials writes the files of the channels into dir.
func credentials(t *testing.T, dir, web string) {
	t.Helper()
	text := func(key any, err error) string {
		testenv.Check(t, err)
		der, err := x509.MarshalPKCS8PrivateKey(key)
		testenv.Check(t, err)
		return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
	account, err := json.Marshal(object{"type": "service_account", "project_id": "p", "client_email": "a@b", "token_uri": "https://" + web + "/token",
		"private_key": text(rsa.GenerateKey(rand.Reader, 2048))})
	testenv.Check(t, err)
	write(t, filepath.Join(dir, "fcm.json"), string(account))
	write(t, filepath.Join(dir, "apns.p8"), text(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)))
}

// TestChannels_All sends through each channel over verified TLS, and reports an unregistered device. A push that a
// provider would refuse is not booked.
func TestChannels_All(t *testing.T) {
	allOnly(t)
	t.Parallel()
	dir, server := t.TempDir(), phones(t)
	web := server.Listener.Addr().String()
	credentials(t, dir, web)
	roots := filepath.Join(dir, "roots.pem")
	write(t, roots, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	b := setupWith(t, options{config: strings.NewReplacer("WEB", web, "DIR", dir, "MAILPORT", postOffice(t, server.TLS.Certificates[0])).Replace(channelsConfig)})
	b.Env = append(b.Env, "SSL_CERT_FILE="+roots)
	b.StartAPI()
	b.Start("worker")

	device := strings.Repeat("0a", 32)
	for _, tt := range []struct{ channel, to, id, reason string }{
		{"sms", "+4512345678", "SM-+4512345678", ""},
		{"droid", strings.Repeat("d", 40), "projects/p/messages/1", ""},
		{"phone", device, "own", ""},
		{"phone", device[:63] + "0", "", "unregistered: the provider answered 410 Gone, Unregistered: the app was removed from the device"},
		{"email", "anna@example.com", "4Z", ""},
	} {
		push := object{"recipient": "anna", "channel": tt.channel, "to": tt.to, "message": object{"title": "Sale", "body": "Today only"}}
		status, a := b.call("POST", "/v1/pushes", push)
		if status != http.StatusCreated {
			t.Fatalf("%s: %d %v", tt.channel, status, a)
		}
		var got object
		b.until(tt.channel+" has ended", func() bool {
			_, got = b.call("GET", "/v1/pushes/"+a["id"].(string), nil)
			return got["status"] == "sent" || got["status"] == "failed"
		})
		if tt.id == "own" {
			tt.id = got["id"].(string)
		}
		send := got["sends"].([]any)[0].(object)
		if id, _ := send["provider_message_id"].(string); id != tt.id || (got["status"] == "sent") != (tt.reason == "") {
			t.Errorf("%s: %v", tt.channel, got)
		}
		if reason, _ := got["last_error"].(string); reason != tt.reason {
			t.Errorf("%s failed for %q", tt.channel, reason)
		}
		push["to"] = "nobody at all"
		if status, a := b.call("POST", "/v1/pushes", push); status != http.StatusUnprocessableEntity || !strings.Contains(fmt.Sprint(a), "body.to") {
			t.Errorf("%s to an invalid address: %d %v", tt.channel, status, a)
		}
	}
	b.wantAudited()
}
