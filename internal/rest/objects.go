package rest

import (
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"
)

// RawObject is an object of JSON with any members, as it is kept; nil: null.
type RawObject json.RawMessage

func (o RawObject) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// Schema describes it.
func (RawObject) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// RawObjects is an array of them.
type RawObjects json.RawMessage

func (o RawObjects) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// Schema describes it.
func (RawObjects) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Items: RawObject{}.Schema(r)}
}
