package campaign

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// The bounds of what an upload stores at once.
const (
	uploadLines = 2000
	uploadBytes = 1 << 20
)

// Upload is an audience that arrives, line by line. It is not safe for concurrent use.
type Upload struct {
	store   *store.Store
	of      store.Upload
	cfg     Config
	waiting []push.CampaignLine // to be stored
	bytes   int                 // of these
	stored  int                 // bytes

	Accepted   int64 // lines that are stored
	Duplicates int64 // lines of recipients who were there before
}

// TooLargeError says that an audience has more recipients, or bytes, than it may.
type TooLargeError struct {
	Most int
	Of   string // what it may have so many of
}

// Error says how many it may have.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("an audience has at most %d %s", e.Most, e.Of)
}

// Upload begins one of a caller, for a draft. Its errors are [push.ErrNotFound], [*push.CampaignStateError] and, if a schedule copies the
// draft, [*push.ScopeError]. It must be ended or dropped.
func (s *Service) Upload(ctx context.Context, by push.Caller, id uuid.UUID) (*Upload, error) {
	of, err := s.store.BeginUpload(ctx, by, id)
	if err != nil {
		return nil, err
	}
	of.Most = by.Caps.Bytes(s.cfg.TenantBytes)
	return &Upload{store: s.store, of: of, cfg: s.cfg}, nil
}

// Bytes returns how many bytes all audiences of a caller's tenant may have together, and how many they have; a limit of 0 is any number.
func (s *Service) Bytes(ctx context.Context, by push.Caller) (limit, used int, err error) {
	used, err = s.store.AudienceBytes(ctx, by.Tenant)
	return by.Caps.Bytes(s.cfg.TenantBytes), used, err
}

// Add adds a line. Of the lines of one recipient, the first one stays. Its errors are [*TooLargeError], a [*booking.Capped] for all
// audiences of the tenant together, and [push.ErrNotFound] if the campaign was deleted. Bytes are those that are kept: a line of CSV may have
// many more than it had in the file, for each of its variables has a name.
func (u *Upload) Add(ctx context.Context, line push.CampaignLine) error {
	u.waiting = append(u.waiting, line)
	if u.bytes += line.Bytes(); len(u.waiting) < uploadLines && u.bytes < uploadBytes {
		return nil
	}
	return u.flush(ctx)
}

// flush stores what waits for it.
func (u *Upload) flush(ctx context.Context) error {
	if len(u.waiting) == 0 {
		return nil
	}
	if u.stored += u.bytes; u.cfg.MaxAudienceBytes > 0 && u.stored > u.cfg.MaxAudienceBytes {
		return &TooLargeError{u.cfg.MaxAudienceBytes, "bytes; it has the names of its variables in each line"}
	}
	added, err := u.store.AddLines(ctx, u.of, u.waiting)
	if err != nil {
		return err
	}
	u.Accepted += int64(added)
	u.Duplicates += int64(len(u.waiting) - added)
	clear(u.waiting)
	u.waiting, u.bytes = u.waiting[:0], 0
	if u.Accepted > int64(u.cfg.MaxAudience) {
		return &TooLargeError{u.cfg.MaxAudience, "recipients"}
	}
	return nil
}

// End makes what has arrived the audience of the campaign, in the place of the former one. Its errors are those of Add and
// of [Service.Upload].
func (u *Upload) End(ctx context.Context) (push.Campaign, error) {
	if err := u.flush(ctx); err != nil {
		return push.Campaign{}, err
	}
	return u.store.EndUpload(ctx, u.of, u.Accepted)
}

// Drop gives the upload up, unless it was ended. The campaign keeps the audience that it has.
func (u *Upload) Drop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = u.store.DropUpload(ctx, u.of) // else it is found after a while
}
