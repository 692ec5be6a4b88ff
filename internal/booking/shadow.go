package booking

import (
	"time"

	"github.com/google/uuid"
)

// ShadowCount is the number of pushes of a category, submitted within a minute, that a shadow rule would have refused.
type ShadowCount struct {
	Tenant         uuid.UUID
	Minute         time.Time // its start
	Rule, Category string
	Pushes         int
}
