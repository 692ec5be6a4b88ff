package pg

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// Column is an array for Postgres that is read out of other things: no slice of its own, and no memory for each element,
// as pgx takes for the elements of a slice, unless At takes it. It has an element at least.
type Column struct {
	Length int
	At     func(i int) any // one of the values below, or any that pgx knows; nil: null
}

// Dimensions, Index and IndexType make it a [pgtype.ArrayGetter].
func (c Column) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(c.Length), LowerBound: 1}}
}

func (c Column) Index(i int) any { return c.At(i) }

func (c Column) IndexType() any { return c.At(0) }

// Values that pgx encodes behind a pointer.
type (
	UUIDValue   [16]byte
	TextValue   string
	TimeValue   time.Time
	BigintValue int64
	MillisValue time.Duration // a bigint of milliseconds
)

func (v *UUIDValue) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: *v, Valid: true}, nil }

func (v *TextValue) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: string(*v), Valid: true}, nil
}

func (v *TimeValue) TimestamptzValue() (pgtype.Timestamptz, error) {
	return pgtype.Timestamptz{Time: time.Time(*v), Valid: true}, nil
}

func (v *BigintValue) Int64Value() (pgtype.Int8, error) {
	return pgtype.Int8{Int64: int64(*v), Valid: true}, nil
}

func (v *MillisValue) Int64Value() (pgtype.Int8, error) {
	return pgtype.Int8{Int64: time.Duration(*v).Milliseconds(), Valid: true}, nil
}

// HourOf is when the hour of a time began.
func HourOf(column string) string { return `date_bin('1 hour', ` + column + `, '2000-01-01Z')` }
