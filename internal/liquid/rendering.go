package liquid

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/zone"
)

// Rendering is the source of a message that contains its time of sending. It is stored as JSON, and renders the message
// again when that time changes.
type Rendering struct {
	Message json.RawMessage   `json:"message"` // with its templates
	Known   []json.RawMessage `json:"known"`   // see [Variables]
	Zone    string            `json:"zone"`    // of the recipient: an IANA name
}

// Again renders the message of a JSON [Rendering] for another time of sending.
func Again(rendering json.RawMessage, at time.Time) (json.RawMessage, error) {
	var of Rendering
	if err := json.Unmarshal(rendering, &of); err != nil {
		return nil, fmt.Errorf("read rendering: %w", err)
	}
	in, err := zone.Load(of.Zone)
	if err != nil {
		return nil, fmt.Errorf("read rendering: %w", err)
	}
	variables, err := Variables(of.Known...)
	if err != nil {
		return nil, fmt.Errorf("read rendering: %w", err)
	}
	m, bad := Parse(of.Message)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return m.Render(variables, func() time.Time { return at.In(in) })
}
