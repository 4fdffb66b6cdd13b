package meaning

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/shopspring/decimal"

	"github.com/docket-gateway/docket/internal/canonical"
)

// Bounds on what arithmetic may make of decimals. A number of JSON text is within them.
const (
	maxDigits   = 4000
	maxExponent = 4000
)

// decimalType has no literals: decimal(x) and sum(list) give its values, and the numbers of JSON that a double cannot hold are some.
var decimalType = types.NewOpaqueType("decimal")

// exact is a decimal number as a CEL value. Operators between it and any other number are exact, see decorate.
type exact struct{ decimal.Decimal }

var _ ref.Val = exact{}

// number is a JSON number: an int if that is what it is, a double if its shortest text is the number, else a decimal. So no number is
// rounded before an assertion sees it.
func number(text json.Number) ref.Val {
	d, err := decimal.NewFromString(text.String())
	if err != nil { // the text was checked before
		return types.WrapErr(err)
	}
	if d.IsInteger() && d.NumDigits()+int(d.Exponent()) <= 19 {
		if i := d.BigInt(); i.IsInt64() {
			return types.Int(i.Int64())
		}
	}
	if f, err := text.Float64(); err == nil {
		if back, err := fromFloat(f); err == nil && back.Equal(d) {
			return types.Double(f)
		}
	}
	return exact{d}
}

// fromFloat takes a double for the shortest decimal that reads back as it, as JSON writes it.
func fromFloat(f float64) (decimal.Decimal, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return decimal.Decimal{}, errors.New("it is not finite")
	}
	return decimal.NewFromString(strconv.FormatFloat(f, 'e', -1, 64))
}

// toDecimal takes any number.
func toDecimal(v ref.Val) (decimal.Decimal, error) {
	switch v := v.(type) {
	case exact:
		return v.Decimal, nil
	case types.Int:
		return decimal.NewFromInt(int64(v)), nil
	case types.Uint:
		return decimal.NewFromUint64(uint64(v)), nil
	case types.Double:
		return fromFloat(float64(v))
	}
	return decimal.Decimal{}, fmt.Errorf("a number is needed, not the %s %s", v.Type().TypeName(), show(v, 40))
}

// parseDecimal takes the text of a number too, in JSON's grammar.
func parseDecimal(v ref.Val) ref.Val {
	text, ok := v.(types.String)
	if !ok {
		d, err := toDecimal(v)
		if err != nil {
			return types.NewErr("decimal: %v", err)
		}
		return exact{d}
	}
	raw := []byte(text)
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') || canonical.CheckNumbers(raw) != nil {
		return types.NewErr("decimal: %s is not a number", show(v, 40))
	}
	d, err := decimal.NewFromString(string(text))
	if err != nil {
		return types.NewErr("decimal: %s is not a number", show(v, 40))
	}
	return exact{d}
}

// sum is exact, and 0 for an empty list.
func sum(v ref.Val) ref.Val {
	list, ok := v.(traits.Lister)
	if !ok {
		return types.NewErr("sum: a list is needed, not the %s %s", v.Type().TypeName(), show(v, 40))
	}
	total := decimal.Zero
	i := 0
	for it := list.Iterator(); it.HasNext() == types.True; i++ {
		d, err := toDecimal(it.Next())
		if err != nil {
			return types.NewErr("sum: element %d: %v", i, err)
		}
		total = total.Add(d)
	}
	return bounded(total)
}

// near says whether two numbers are no further apart than the tolerance, exactly.
func near(args ...ref.Val) ref.Val {
	var d [3]decimal.Decimal
	for i, arg := range args {
		var err error
		if d[i], err = toDecimal(arg); err != nil {
			return types.NewErr("near: %v", err)
		}
	}
	if d[2].IsNegative() {
		return types.NewErr("near: the tolerance %s is negative", d[2])
	}
	return types.Bool(d[0].Sub(d[1]).Abs().LessThanOrEqual(d[2]))
}

// bounded keeps arithmetic from growing without end.
func bounded(d decimal.Decimal) ref.Val {
	if d.NumDigits() > maxDigits || d.Exponent() > maxExponent || d.Exponent() < -maxExponent {
		return types.NewErr("decimal: the number has too many digits")
	}
	return exact{d}
}

// ConvertToNative implements ref.Val.
func (e exact) ConvertToNative(t reflect.Type) (any, error) {
	if t.Kind() == reflect.String {
		return reflect.ValueOf(e.String()).Convert(t).Interface(), nil
	}
	return nil, fmt.Errorf("a decimal cannot become a %s", t)
}

// ConvertToType implements ref.Val.
func (e exact) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.StringType:
		return types.String(e.String())
	case types.DoubleType:
		return types.Double(e.InexactFloat64())
	case types.IntType:
		if !e.IsInteger() || e.NumDigits()+int(e.Exponent()) > 19 || !e.BigInt().IsInt64() {
			return types.NewErr("int: the decimal %s is not one", show(e, 40))
		}
		return types.Int(e.IntPart())
	case decimalType:
		return e
	case types.TypeType:
		return decimalType
	}
	return types.NewErr("a decimal cannot become a %s", t.TypeName())
}

// Equal implements ref.Val.
func (e exact) Equal(other ref.Val) ref.Val {
	d, err := toDecimal(other)
	return types.Bool(err == nil && e.Decimal.Equal(d))
}

// Type implements ref.Val.
func (exact) Type() ref.Type { return decimalType }

// Value implements ref.Val.
func (e exact) Value() any { return e.String() }

// conversions lets decimals become other types, as any number can.
func conversions() []cel.EnvOption {
	to := func(name string, t *cel.Type) cel.EnvOption {
		return cel.Function(name, cel.Overload("decimal_to_"+name, []*cel.Type{decimalType}, t,
			cel.UnaryBinding(func(v ref.Val) ref.Val { return v.ConvertToType(t) })))
	}
	return []cel.EnvOption{to("string", cel.StringType), to("double", cel.DoubleType), to("int", cel.IntType)}
}
