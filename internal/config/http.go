package config

// HTTP is how the programs answer.
type HTTP struct {
	MaxConnections int // at least 1; beyond it idle ones are closed, and newcomers wait
}

func (h *HTTP) fields() []field {
	return []field{
		{"max_connections", "10000", "connections at a time, 1 to 1000000; beyond it those that are idle longest are closed, and newcomers wait", integer(&h.MaxConnections, 1, 1_000_000)},
	}
}
