package rest

import "bytes"

// HalfPair is the error of a string with a single escape like \ud800: it stands for no text, and decoders
// treat it differently.
const HalfPair = "must be valid Unicode: it has half of a surrogate pair"

// addHalves adds an error for each string and each name in a value that has half of a surrogate pair, at its
// place. The errors from since on belong to the same value; a place with an error gets no second one.
func (e *FieldErrors) addHalves(name string, raw []byte, since int) {
	if !bytes.Contains(raw, []byte(`\ud`)) && !bytes.Contains(raw, []byte(`\uD`)) {
		return // nearly always
	}
	known := map[string]bool{}
	for _, one := range e.List[min(since, len(e.List)):] {
		known[one.Field] = true
	}
	ReadAgain(raw, func(r *Reader) {
		r.halves(name, func(place, wrong string, text []byte) {
			if !known[place] {
				e.AddJSON(place, wrong, text)
			}
		})
	})
}

// halves finds half pairs in the next value.
func (r *Reader) halves(place string, found func(place, wrong string, text []byte)) {
	switch r.Peek() {
	case '{':
		r.within(func() bool {
			quoted, err := r.json.ReadValue()
			if r.fail(err); err != nil {
				return false
			}
			name, whole := Unquote(quoted)
			member := Under(place, Short([]byte(name)))
			if !whole {
				found(member, "must have a name that is valid Unicode: it has half of a surrogate pair", quoted)
			}
			r.halves(member, found)
			return true
		})
	case '[':
		for i := range r.elements {
			r.halves(Item(place, i), found)
		}
	case '"':
		text := r.Value()
		if _, whole := Unquote(text); !whole {
			found(place, HalfPair, text)
		}
	default:
		r.Value()
	}
}
