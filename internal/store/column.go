package store

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// column is an array for Postgres that is read out of other things: no slice of its own, and no memory for each element,
// as pgx takes for the elements of a slice, unless at takes it. It has an element at least.
type column struct {
	length int
	at     func(i int) any // one of the values below, or any that pgx knows; nil: null
}

// Dimensions, Index and IndexType make it a [pgtype.ArrayGetter].
func (c column) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(c.length), LowerBound: 1}}
}

func (c column) Index(i int) any { return c.at(i) }

func (c column) IndexType() any { return c.at(0) }

// Values that pgx encodes behind a pointer.
type (
	uuidValue   [16]byte
	textValue   string
	timeValue   time.Time
	bigintValue int64
	millisValue time.Duration // a bigint of milliseconds
)

func (v *uuidValue) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: *v, Valid: true}, nil }

func (v *textValue) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: string(*v), Valid: true}, nil
}

func (v *timeValue) TimestamptzValue() (pgtype.Timestamptz, error) {
	return pgtype.Timestamptz{Time: time.Time(*v), Valid: true}, nil
}

func (v *bigintValue) Int64Value() (pgtype.Int8, error) {
	return pgtype.Int8{Int64: int64(*v), Valid: true}, nil
}

func (v *millisValue) Int64Value() (pgtype.Int8, error) {
	return pgtype.Int8{Int64: time.Duration(*v).Milliseconds(), Valid: true}, nil
}

// hourOf is when the hour of a time began.
func hourOf(column string) string { return `date_bin('1 hour', ` + column + `, '2000-01-01Z')` }
