package liquid

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// kindOf is 'n' of a number, 't' of a text, and ' ' of all else.
func kindOf(v any) byte {
	switch v.(type) {
	case int, float64:
		return 'n'
	case string, markup:
		return 't'
	}
	return ' '
}

var numeral = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?$`)

// number is a value as an int or a float64, if it is one, or a text that is one.
func number(v any) (any, bool) {
	switch v := v.(type) {
	case int, float64:
		return v, true
	case string, markup:
		text := strings.Trim(textOf(v), spaces)
		if len(text) > 400 || !numeral.MatchString(text) {
			return nil, false
		}
		if n, err := strconv.Atoi(text); err == nil {
			return n, true
		}
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f, true
		}
	}
	return nil, false
}

// counted is a value that a filter counts with: nothing counts as 0, and what is no number is a fault.
func counted(v any) (any, error) {
	switch v.(type) {
	case nil, special, *object, bool:
		return 0, nil
	}
	if n, ok := number(v); ok {
		return n, nil
	}
	return nil, fmt.Errorf("%s does not count", kindOfValue(v))
}

// ratio is a number, as it is written: 0.1 is a tenth.
func ratio(n any) *big.Rat {
	if n, ok := n.(int); ok {
		return new(big.Rat).SetInt64(int64(n))
	}
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(n.(float64), 'f', -1, 64)) // a float64 that is finite is one
	return r
}

// order compares two numbers.
func order(a, b any) int { return ratio(a).Cmp(ratio(b)) }

var (
	errLarge = errors.New("a number is too large")
	errZero  = errors.New("a number is divided by 0")
)

// exact is a ratio as a whole number if both that it is made of are whole, and else as a float64.
func exact(r *big.Rat, a, b any) (any, error) {
	_, wholeA := a.(int)
	_, wholeB := b.(int)
	if wholeA && wholeB {
		return floor(r)
	}
	f, _ := r.Float64()
	if f > 1e300 || f < -1e300 {
		return nil, errLarge
	}
	return f, nil
}

// floor is the greatest whole number that is not above a ratio.
func floor(r *big.Rat) (any, error) {
	n := new(big.Int).Div(r.Num(), r.Denom()) // rounds down, as the denominator is positive
	if !n.IsInt64() {
		return nil, errLarge
	}
	return int(n.Int64()), nil
}

// truncated is a number without its fraction.
func truncated(n any) (int, error) {
	if n, ok := n.(int); ok {
		return n, nil
	}
	r := ratio(n)
	q := new(big.Int).Quo(r.Num(), r.Denom())
	if !q.IsInt64() {
		return 0, errLarge
	}
	return int(q.Int64()), nil
}
