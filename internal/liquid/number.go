package liquid

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// kindOf returns 'n' for a number, 't' for a text, and ' ' for anything else.
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

// number returns a number or a numeric text as an int or a float64.
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

// counted returns a value as a number: nil is 0, and any other value that is not numeric is an error.
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

// ratio returns the decimal value of a number: 0.1 is a tenth.
func ratio(n any) *big.Rat {
	if n, ok := n.(int); ok {
		return new(big.Rat).SetInt64(int64(n))
	}
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(n.(float64), 'f', -1, 64)) // always succeeds for a finite float64
	return r
}

// order compares two numbers.
func order(a, b any) int { return ratio(a).Cmp(ratio(b)) }

var (
	errLarge = errors.New("a number is too large")
	errZero  = errors.New("a number is divided by 0")
)

// exact returns a ratio as an int if both operands are whole, and otherwise as a float64.
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

// floor returns the greatest integer that is not above a ratio.
func floor(r *big.Rat) (any, error) {
	n := new(big.Int).Div(r.Num(), r.Denom()) // rounds down, as the denominator is positive
	if !n.IsInt64() {
		return nil, errLarge
	}
	return int(n.Int64()), nil
}

// truncated returns a number without its fraction.
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
