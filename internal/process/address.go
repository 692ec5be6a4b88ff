package process

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
)

// The ports of FreeAddr lie below those that systems give to outgoing
// connections. Within these, a client that keeps trying to reach a stopped server
// would in the end connect to itself, and hold the port.
const lowestPort, ports = 15000, 17768

var (
	firstPort = rand.Int64N(ports)
	portsUsed atomic.Int64
)

// FreeAddr returns a loopback address without a listener, and another one each time. Another process may take it before
// it is used.
func FreeAddr() (string, error) {
	var err error
	for range 1000 {
		addr := fmt.Sprint("127.0.0.1:", lowestPort+(firstPort+portsUsed.Add(1))%ports)
		listener, listenErr := net.Listen("tcp4", addr)
		if listenErr == nil {
			return addr, listener.Close()
		}
		err = listenErr
	}
	return "", fmt.Errorf("find a free port: %w", err)
}
