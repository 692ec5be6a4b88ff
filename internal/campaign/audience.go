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
	most    int
	waiting []push.CampaignLine // to be stored
	bytes   int

	Accepted   int64 // lines that are stored
	Duplicates int64 // lines of recipients who were there before
}

// TooLargeError says that an audience has more recipients than it may.
type TooLargeError struct{ Most int }

// Error says how many it may have.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("an audience has at most %d recipients", e.Most)
}

// Upload begins one of a caller, for a draft. Its errors are [push.ErrNotFound], [*push.CampaignStateError] and, if a schedule copies the
// draft, [*push.ScopeError]. It must be ended or dropped.
func (s *Service) Upload(ctx context.Context, by push.Caller, id uuid.UUID) (*Upload, error) {
	of, err := s.store.BeginUpload(ctx, by, id)
	if err != nil {
		return nil, err
	}
	return &Upload{store: s.store, of: of, most: s.cfg.MaxAudience}, nil
}

// Add adds a line, whose text had so many bytes. Of the lines of one recipient, the first one stays. Its errors are [TooLargeError],
// and [push.ErrNotFound] if the campaign was deleted.
func (u *Upload) Add(ctx context.Context, line push.CampaignLine, bytes int) error {
	u.waiting = append(u.waiting, line)
	if u.bytes += bytes; len(u.waiting) < uploadLines && u.bytes < uploadBytes {
		return nil
	}
	return u.flush(ctx)
}

// flush stores what waits for it.
func (u *Upload) flush(ctx context.Context) error {
	if len(u.waiting) == 0 {
		return nil
	}
	added, err := u.store.AddLines(ctx, u.of, u.waiting)
	if err != nil {
		return err
	}
	u.Accepted += int64(added)
	u.Duplicates += int64(len(u.waiting) - added)
	clear(u.waiting)
	u.waiting, u.bytes = u.waiting[:0], 0
	if u.Accepted > int64(u.most) {
		return &TooLargeError{u.most}
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
