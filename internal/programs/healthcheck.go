package programs

import (
	"fmt"
	"net"
	"net/http"
	"time"
)

// healthcheck asks the program on this machine how it is. The image has no other program that could.
type healthcheck struct {
	Ready bool `help:"Ask whether it can do its work: /readyz in place of /healthz."`
}

// ask succeeds if the program that listens at addr, the value of a variable, says so.
func (h healthcheck) ask(variable, addr string) error {
	if addr == "" {
		return fmt.Errorf("%s is not set: set it, so that the program answers there", variable)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	path := "/healthz"
	if h.Ready {
		path = "/readyz"
	}
	client := http.Client{Timeout: 3 * time.Second}
	res, err := client.Get("http://" + net.JoinHostPort(host, port) + path)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", path, res.Status)
	}
	return nil
}
