package app

import (
	"errors"
	"log/slog"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/store"
)

// Load reads the settings of the services as [config.Load] does, and tries them on the parts: a key that is none, a
// file that can not be read. It says all that is wrong at once.
func Load(environ []string) (config.Config, error) {
	cfg, err := config.Load(environ)
	var faults config.Errors
	errors.As(err, &faults)
	return cfg, errors.Join(err, check(cfg, faults))
}

// check makes every part whose settings could be read, and drops it.
func check(cfg config.Config, read config.Errors) error {
	var wrong []error
	for _, c := range cfg.Channels {
		if !read.Concern("channels." + c.Name) {
			_, err := newChannel(c, slog.New(slog.DiscardHandler))
			wrong = append(wrong, err)
		}
	}
	if cfg.RedisURL != "" {
		_, err := redisOptions(string(cfg.RedisURL), 0)
		wrong = append(wrong, err)
	}
	if cfg.DatabaseURL != "" {
		wrong = append(wrong, store.CheckURL(string(cfg.DatabaseURL)))
	}
	return errors.Join(wrong...)
}
