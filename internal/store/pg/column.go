package pg

import (
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"
)

// registerTypes registers how a connection reads and writes uuids and times. Times are in UTC.
func registerTypes(m *pgtype.Map) {
	pgxuuid.Register(m)
	m.RegisterType(&pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: uuidCodec{}})
	m.RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
}

// uuidCodec copies the bytes of a uuid. Without it, pgx writes the uuid as a text, which [uuid.UUID] then parses.
type uuidCodec struct{ pgxuuid.UUIDCodec }

// PlanScan implements [pgtype.Codec].
func (c uuidCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, is := target.(*uuid.UUID); is && format == pgtype.BinaryFormatCode {
		return copyUUID{}
	}
	return c.UUIDCodec.PlanScan(m, oid, format, target)
}

type copyUUID struct{}

// Scan implements [pgtype.ScanPlan]. As in [uuid.UUID.Scan], null changes nothing.
func (copyUUID) Scan(src []byte, to any) error {
	if src == nil {
		return nil
	}
	if len(src) != len(uuid.UUID{}) {
		return fmt.Errorf("a uuid of %d bytes", len(src))
	}
	copy(to.(*uuid.UUID)[:], src)
	return nil
}

// Column is an array argument for Postgres that is read from other data. It needs no slice of its own. pgx allocates
// memory for each element of a slice, Column only for what At allocates. It has at least one element.
type Column struct {
	Length int
	At     func(i int) any // returns one of the values below or any value that pgx encodes; nil is null
}

// Dimensions returns the single dimension of the array. With Index and IndexType it implements [pgtype.ArrayGetter].
func (c Column) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(c.Length), LowerBound: 1}}
}

// Index returns the element i.
func (c Column) Index(i int) any { return c.At(i) }

// IndexType returns an element. Its Go type selects the encoding.
func (c Column) IndexType() any { return c.At(0) }

// Values that pgx encodes through a pointer, without a copy.
type (
	// UUIDValue is a uuid.
	UUIDValue [16]byte
	// TextValue is a text.
	TextValue string
	// TimeValue is a timestamptz.
	TimeValue time.Time
	// BigintValue is a bigint.
	BigintValue int64
	// MillisValue is a bigint of milliseconds.
	MillisValue time.Duration
)

// UUIDValue implements [pgtype.UUIDValuer].
func (v *UUIDValue) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: *v, Valid: true}, nil }

// TextValue implements [pgtype.TextValuer].
func (v *TextValue) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: string(*v), Valid: true}, nil
}

// TimestamptzValue implements [pgtype.TimestamptzValuer].
func (v *TimeValue) TimestamptzValue() (pgtype.Timestamptz, error) {
	return pgtype.Timestamptz{Time: time.Time(*v), Valid: true}, nil
}

// Int64Value implements [pgtype.Int64Valuer].
func (v *BigintValue) Int64Value() (pgtype.Int8, error) {
	return pgtype.Int8{Int64: int64(*v), Valid: true}, nil
}

// Int64Value implements [pgtype.Int64Valuer].
func (v *MillisValue) Int64Value() (pgtype.Int8, error) {
	return pgtype.Int8{Int64: time.Duration(*v).Milliseconds(), Valid: true}, nil
}

// HourOf returns an SQL expression for the beginning of the hour of a timestamptz column, in UTC.
func HourOf(column string) string { return `date_bin('1 hour', ` + column + `, '2000-01-01Z')` }
