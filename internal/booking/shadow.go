package booking

import (
	"time"

	"github.com/google/uuid"
)

// ShadowCount is how many pushes of a category, submitted within a minute, a shadow rule would have refused.
type ShadowCount struct {
	Tenant         uuid.UUID
	Minute         time.Time // at which it begins
	Rule, Category string
	Pushes         int
}
