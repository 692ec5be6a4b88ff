package app

import (
	"errors"
	"log/slog"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/sendquota/sendquota/internal/config"
)

// Load reads the settings of the services like [config.Load]. It also creates every part with readable settings, and drops
// it, to find errors such as an invalid key or an unreadable file. It reports all errors at once.
func Load(environ []string) (config.Config, error) {
	cfg, err := config.Load(environ)
	var read config.Errors
	errors.As(err, &read)
	wrong := []error{err}
	for _, c := range cfg.Channels {
		if !read.Concern("channels." + c.Name) {
			_, err := newChannel(c, slog.New(slog.DiscardHandler))
			wrong = append(wrong, err)
		}
	}
	if !read.Concern("console.oidc") {
		_, err := openOIDC(cfg.Console.OIDC)
		wrong = append(wrong, err)
	}
	if cfg.RedisURL != "" {
		_, err := redisOptions(cfg.RedisURL, 0)
		wrong = append(wrong, err)
	}
	if cfg.DatabaseURL != "" {
		wrong = append(wrong, pg.CheckURL(string(cfg.DatabaseURL)))
	}
	return cfg, errors.Join(wrong...)
}
