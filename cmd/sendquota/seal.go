package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/seal"
	"github.com/sendquota/sendquota/internal/store"
)

type rotateSeal struct {
	jsonFlag
	Stopped bool `help:"All programs are stopped. Without it, nothing is changed before a program has started with the new key: those with only the old key could not open the secrets."`
	Forget  int  `placeholder:"N" help:"Give up the secrets that neither key opens, if there are exactly N: their webhooks and channels are disabled until they get new secrets. This cannot be undone."`
}

// Validate is called by kong.
func (c rotateSeal) Validate() error {
	if c.Forget < 0 {
		return fmt.Errorf("--forget %d: must be the number of secrets that neither key opens", c.Forget)
	}
	return nil
}

// Help explains how to change the key.
func (rotateSeal) Help() string {
	return `Set SENDQUOTA_SEAL_KEY to the new key and SENDQUOTA_SEAL_KEY_PREVIOUS to the old one, everywhere: the API and the workers read with both and write with the new one. Then run this command. If it is interrupted, run it again: it continues with the rest. Then remove SENDQUOTA_SEAL_KEY_PREVIOUS.

A new key: openssl rand -base64 32. See docs/operations.md.`
}

func (c rotateSeal) Run() error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		if err := st.CheckRotation(ctx); err != nil && (!errors.Is(err, pg.ErrOldSealKey) || !c.Stopped) {
			if errors.Is(err, pg.ErrOldSealKey) {
				return fmt.Errorf("%w: start every api and worker with both keys first, or stop them all and add --stopped", err)
			}
			return err
		}
		began, resealed, told := time.Now(), 0, time.Now()
		lost, err := st.Reseal(ctx, func(n int) {
			resealed += n
			if time.Since(told) >= time.Second {
				told = time.Now()
				fmt.Fprintf(os.Stderr, "resealed %d secrets in %s\n", resealed, duration.Words(time.Since(began).Round(time.Second)))
			}
		})
		if errors.Is(err, seal.ErrNoKey) {
			return fmt.Errorf("%s is not set: set it to the new key", seal.KeyVariable)
		}
		if err != nil {
			return fmt.Errorf("resealed %d secrets, then failed; run it again to continue: %w", resealed, err)
		}
		forgotten := 0
		if c.Forget > 0 && c.Forget == len(lost) {
			if err := st.ForgetSecrets(ctx, lost); err != nil {
				return err
			}
			forgotten, lost = len(lost), nil
		}
		if len(lost) == 0 {
			if err := st.NoteSealKey(ctx, true); err != nil {
				return err
			}
		}
		return errors.Join(c.report(resealed, forgotten, lost), c.fault(lost))
	})
}

// report prints the numbers of resealed and forgotten secrets, and the secrets that neither key opens.
func (c rotateSeal) report(resealed, forgotten int, lost []pg.LostSecret) error {
	left := make([]string, len(lost))
	for i, l := range lost {
		left[i] = l.Err.Error()
	}
	text := fmt.Sprintf("resealed %d secrets\n", resealed)
	if forgotten > 0 {
		text += fmt.Sprintf("gave up %d secrets\n", forgotten)
	}
	for _, line := range left {
		text += "cannot " + line + "\n"
	}
	return c.print(map[string]any{"resealed": resealed, "forgotten": forgotten, "unopened": left}, "%s", text)
}

// fault returns an error if secrets are left that neither key opens.
func (c rotateSeal) fault(lost []pg.LostSecret) error {
	switch {
	case len(lost) == 0:
		return nil
	case c.Forget > 0:
		return fmt.Errorf("neither key opens %d secrets, not %d: nothing was given up", len(lost), c.Forget)
	}
	return fmt.Errorf("neither key opens %d secrets: set %s to the key that sealed them; if it is lost, give them up with --forget %[1]d", len(lost), seal.PreviousVariable)
}
