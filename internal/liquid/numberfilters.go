package liquid

import "math/big"

// mathSteps is the cost of decimal arithmetic.
const mathSteps = 10

var numberFilters = map[string]filter{
	"abs":        {heavy: mathSteps, do: absolute},
	"at_least":   {least: 1, most: 1, heavy: mathSteps, do: bounded(-1)},
	"at_most":    {least: 1, most: 1, heavy: mathSteps, do: bounded(1)},
	"ceil":       {heavy: mathSteps, do: toWhole(func(r *big.Rat) (any, error) { n, err := floor(new(big.Rat).Neg(r)); return negated(n), err })},
	"divided_by": calculation(divide),
	"floor":      {heavy: mathSteps, do: toWhole(floor)},
	"minus":      calculation(subtract),
	"modulo":     calculation(modulo),
	"plus":       calculation(add),
	"round":      {most: 1, heavy: mathSteps, do: round},
	"times":      calculation(multiply),
}

// operation computes a number from two. It does not change the second one.
type operation func(a, b any) (any, error)

func calculation(do operation) filter {
	return filter{least: 1, most: 1, heavy: mathSteps, do: func(_ *machine, v any, args []any) (any, error) { return calculated(v, args[0], do) }}
}

// calculated applies an operation to two values that must be numeric.
func calculated(a, b any, do operation) (any, error) {
	x, err := counted(a)
	if err != nil {
		return nil, err
	}
	y, err := counted(b)
	if err != nil {
		return nil, err
	}
	return do(x, y)
}

func add(a, b any) (any, error)      { return exact(new(big.Rat).Add(ratio(a), ratio(b)), a, b) }
func subtract(a, b any) (any, error) { return exact(new(big.Rat).Sub(ratio(a), ratio(b)), a, b) }
func multiply(a, b any) (any, error) { return exact(new(big.Rat).Mul(ratio(a), ratio(b)), a, b) }

// divide divides whole numbers to a whole one, rounded down.
func divide(a, b any) (any, error) {
	by := ratio(b)
	if by.Sign() == 0 {
		return nil, errZero
	}
	return exact(by.Quo(ratio(a), by), a, b)
}

// modulo returns the remainder of a division, with the sign of b.
func modulo(a, b any) (any, error) {
	by := ratio(b)
	if by.Sign() == 0 {
		return nil, errZero
	}
	times := new(big.Rat).Quo(ratio(a), by)
	whole := new(big.Rat).SetInt(new(big.Int).Div(times.Num(), times.Denom()))
	return exact(new(big.Rat).Sub(ratio(a), whole.Mul(whole, by)), a, b)
}

func negated(n any) any {
	if n, ok := n.(int); ok {
		return -n
	}
	return n
}

func absolute(_ *machine, v any, _ []any) (any, error) {
	n, err := counted(v)
	switch n := n.(type) {
	case int:
		return max(n, -n), err
	case float64:
		return max(n, -n), err
	}
	return nil, err
}

// bounded returns a filter that limits a value by its argument: from above if sign is 1, else from below.
func bounded(sign int) func(*machine, any, []any) (any, error) {
	return func(_ *machine, v any, args []any) (any, error) {
		return calculated(v, args[0], func(a, b any) (any, error) {
			if order(a, b) == sign {
				return b, nil
			}
			return a, nil
		})
	}
}

// toWhole returns a filter that converts any number to a whole one.
func toWhole(do func(*big.Rat) (any, error)) func(*machine, any, []any) (any, error) {
	return func(_ *machine, v any, _ []any) (any, error) {
		n, err := counted(v)
		if err != nil {
			return nil, err
		}
		return do(ratio(n))
	}
}

// maxPlaces is the maximum number of decimal places for rounding: a float64 has no more.
const maxPlaces = 308

// round rounds to a number of decimal places, half away from 0.
func round(_ *machine, v any, args []any) (any, error) {
	n, err := counted(v)
	if err != nil {
		return nil, err
	}
	places := 0
	if len(args) > 0 {
		by, err := counted(args[0])
		if err != nil {
			return nil, err
		}
		if places, err = truncated(by); err != nil {
			return nil, err
		}
	}
	places = min(max(places, -maxPlaces), maxPlaces)
	unit := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(places, -places))), nil))
	if places < 0 {
		unit.Inv(unit)
	}
	r := ratio(n)
	scaled := new(big.Rat).Mul(new(big.Rat).Abs(r), unit)
	scaled.Add(scaled, big.NewRat(1, 2))
	rounded := new(big.Rat).SetInt(new(big.Int).Quo(scaled.Num(), scaled.Denom()))
	rounded.Quo(rounded, unit)
	if r.Sign() < 0 {
		rounded.Neg(rounded)
	}
	if places > 0 {
		return exact(rounded, n, n)
	}
	return floor(rounded)
}
