package campaign

import (
	"context"
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/store/campaigns"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/push"
)

// An upload stores its lines in portions of this size.
const (
	uploadLines = 2000
	uploadBytes = 1 << 20
)

// audiences stores uploads of audiences.
type audiences interface {
	BeginUpload(ctx context.Context, by push.Caller, campaign uuid.UUID) (campaigns.Upload, error)
	AddLines(ctx context.Context, u campaigns.Upload, lines []broadcast.AudienceLine) (int, error)
	EndUpload(ctx context.Context, u campaigns.Upload, lines int64) (broadcast.Campaign, error)
	DropUpload(ctx context.Context, u campaigns.Upload) error
	AudienceBytes(ctx context.Context, tenant uuid.UUID) (used int, err error)
}

// Upload is an audience that arrives line by line. It is not safe for concurrent use.
type Upload struct {
	store   audiences
	of      campaigns.Upload
	cfg     Config
	waiting []broadcast.AudienceLine // lines to be stored
	bytes   int                      // size of waiting
	stored  int                      // bytes

	Accepted   int64 // lines stored
	Duplicates int64 // lines whose recipient came before
}

// TooLargeError: an audience exceeds the maximum number of recipients, or of bytes.
type TooLargeError struct {
	Most int
	Of   string // the unit of Most
}

// Error returns the maximum in a sentence.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("an audience has at most %d %s", e.Most, e.Of)
}

// Upload begins an upload for a caller's draft. Its errors are [push.ErrNotFound], [*broadcast.StateError] and, if a
// schedule copies the draft, [*push.ScopeError]. End or drop the upload.
func (s *Service) Upload(ctx context.Context, by push.Caller, id uuid.UUID) (*Upload, error) {
	of, err := s.audiences.BeginUpload(ctx, by, id)
	if err != nil {
		return nil, err
	}
	of.Most = by.Caps.Bytes(s.cfg.TenantBytes)
	return &Upload{store: s.audiences, of: of, cfg: s.cfg}, nil
}

// Bytes returns the limit and the usage of bytes of all audiences of a caller's tenant. A limit of 0 means unlimited.
func (s *Service) Bytes(ctx context.Context, by push.Caller) (limit, used int, err error) {
	used, err = s.audiences.AudienceBytes(ctx, by.Tenant)
	return by.Caps.Bytes(s.cfg.TenantBytes), used, err
}

// Add adds a line. Of the lines of one recipient, the first one stays. Its errors are [*TooLargeError], a
// [*booking.Capped] for all audiences of the tenant together, and [push.ErrNotFound] if the campaign was deleted. Bytes
// are counted as stored: a line of CSV can grow, because each of its variables is stored with its name.
func (u *Upload) Add(ctx context.Context, line broadcast.AudienceLine) error {
	u.waiting = append(u.waiting, line)
	if u.bytes += line.Bytes(); len(u.waiting) < uploadLines && u.bytes < uploadBytes {
		return nil
	}
	return u.flush(ctx)
}

// flush stores the waiting lines.
func (u *Upload) flush(ctx context.Context) error {
	if len(u.waiting) == 0 {
		return nil
	}
	if u.stored += u.bytes; u.cfg.MaxAudienceBytes > 0 && u.stored > u.cfg.MaxAudienceBytes {
		return &TooLargeError{u.cfg.MaxAudienceBytes, "bytes, with the names of the variables in each line"}
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

// End replaces the campaign's audience by the uploaded one. Its errors are the errors of Add and of [Service.Upload].
func (u *Upload) End(ctx context.Context) (broadcast.Campaign, error) {
	if err := u.flush(ctx); err != nil {
		return broadcast.Campaign{}, err
	}
	return u.store.EndUpload(ctx, u.of, u.Accepted)
}

// Drop discards the upload, unless it has ended. The campaign keeps its audience.
func (u *Upload) Drop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = u.store.DropUpload(ctx, u.of) // else a sweep finds it after a while
}
