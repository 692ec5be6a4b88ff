package e2e

import (
	"io"
	"strconv"
	"strings"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// watched is a worker that serves its metrics.
type watched struct {
	*process.Process
	url string
}

func (b *bundle) startWatchedWorker() watched {
	b.t.Helper()
	addr := testenv.FreeAddr(b.t)
	p := b.Start("worker", "SENDQUOTA_METRICS_ADDR="+addr)
	b.until("the worker serves its metrics", func() bool {
		res, err := httpClient.Get("http://" + addr + "/healthz")
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})
	return watched{p, "http://" + addr}
}

func (p watched) metric(name string) float64 { return metric(p.url, name) }

// metric reads one metric with its labels; 0 if it is not there, and -1 if
// nothing can be read.
func metric(url, name string) float64 {
	res, err := httpClient.Get(url + "/metrics")
	if err != nil {
		return -1
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				return -1
			}
			return n
		}
	}
	return 0
}
