package programs

import (
	"fmt"
	"net"
	"net/http"
	"time"
)

// healthcheck checks the program on this machine. The image has no other program for it.
type healthcheck struct {
	Ready bool `help:"Check whether it is ready: /readyz instead of /healthz."`
}

// ask returns an error unless the program at addr, the value of a variable, answers 200.
func (h healthcheck) ask(variable, addr string) error {
	if addr == "" {
		return fmt.Errorf("%s is not set; set it to the address of the program", variable)
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
