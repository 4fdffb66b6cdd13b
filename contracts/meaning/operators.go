package meaning

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// decorate gives the operators below our meaning of them. cel-go asks the left operand alone, and its numbers know no decimals:
// 1.5 == decimal("1.5") would be false without a word.
func decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || len(call.Args()) != 2 {
		return i, nil
	}
	apply, ok := binary(call.Function())
	if !ok {
		return i, nil
	}
	return &operator{call, apply}, nil
}

// operator is a call of a binary operator.
type operator struct {
	interpreter.InterpretableCall
	apply func(l, r ref.Val) ref.Val
}

// Exec implements interpreter.InterpretableV2.
func (o *operator) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := o.Args()
	l := args[0].Exec(frame)
	if types.IsError(l) {
		return l
	}
	r := args[1].Exec(frame)
	if types.IsError(r) {
		return r
	}
	return o.apply(l, r)
}

// Eval implements interpreter.Interpretable.
func (o *operator) Eval(vars interpreter.Activation) ref.Val {
	return o.Exec(interpreter.AsFrame(vars))
}

// binary is what an operator does, with decimals exactly and else as cel-go does it.
func binary(function string) (apply func(l, r ref.Val) ref.Val, ok bool) {
	switch function {
	case operators.Equals:
		return func(l, r ref.Val) ref.Val { return types.Bool(equal(l, r)) }, true
	case operators.NotEquals:
		return func(l, r ref.Val) ref.Val { return types.Bool(!equal(l, r)) }, true
	case operators.In:
		return in, true
	case operators.Less:
		return compared(func(c types.Int) bool { return c < 0 }), true
	case operators.LessEquals:
		return compared(func(c types.Int) bool { return c <= 0 }), true
	case operators.Greater:
		return compared(func(c types.Int) bool { return c > 0 }), true
	case operators.GreaterEquals:
		return compared(func(c types.Int) bool { return c >= 0 }), true
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo:
		return func(l, r ref.Val) ref.Val { return calculate(function, l, r) }, true
	}
	return nil, false
}

// equal goes down into lists and maps itself, since a decimal may be in them.
func equal(l, r ref.Val) bool {
	_, isExact := r.(exact)
	if isExact {
		return r.Equal(l) == types.True
	}
	switch l := l.(type) {
	case traits.Lister:
		r, ok := r.(traits.Lister)
		if !ok || l.Size() != r.Size() {
			return false
		}
		for i, j := l.Iterator(), r.Iterator(); i.HasNext() == types.True; {
			if !equal(i.Next(), j.Next()) {
				return false
			}
		}
		return true
	case traits.Mapper:
		r, ok := r.(traits.Mapper)
		if !ok || l.Size() != r.Size() {
			return false
		}
		for it := l.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			other, found := r.Find(key)
			if !found || !equal(l.Get(key), other) {
				return false
			}
		}
		return true
	}
	return types.Equal(l, r) == types.True
}

func in(l, r ref.Val) ref.Val {
	switch r := r.(type) {
	case traits.Lister:
		for it := r.Iterator(); it.HasNext() == types.True; {
			if equal(l, it.Next()) {
				return types.True
			}
		}
		return types.False
	case traits.Container:
		return r.Contains(l)
	}
	return types.MaybeNoSuchOverloadErr(r)
}

func compared(holds func(types.Int) bool) func(l, r ref.Val) ref.Val {
	return func(l, r ref.Val) ref.Val {
		if !hasDecimal(l, r) {
			c, ok := l.(traits.Comparer)
			if !ok {
				return types.MaybeNoSuchOverloadErr(l)
			}
			order := c.Compare(r)
			if n, ok := order.(types.Int); ok {
				return types.Bool(holds(n))
			}
			return order
		}
		a, err := toDecimal(l)
		if err != nil {
			return types.WrapErr(err)
		}
		b, err := toDecimal(r)
		if err != nil {
			return types.WrapErr(err)
		}
		return types.Bool(holds(types.Int(a.Cmp(b))))
	}
}

// calculate with decimals is exact. There is no division of decimals, which could not be.
func calculate(function string, l, r ref.Val) ref.Val {
	if !hasDecimal(l, r) {
		return arithmetic(function, l, r)
	}
	a, err := toDecimal(l)
	if err != nil {
		return types.WrapErr(err)
	}
	b, err := toDecimal(r)
	if err != nil {
		return types.WrapErr(err)
	}
	switch function {
	case operators.Add:
		return bounded(a.Add(b))
	case operators.Subtract:
		return bounded(a.Sub(b))
	case operators.Multiply:
		return bounded(a.Mul(b))
	}
	return types.NewErr("decimals are added, subtracted, multiplied and compared; a division would not be exact")
}

func arithmetic(function string, l, r ref.Val) ref.Val {
	switch function {
	case operators.Add:
		if l, ok := l.(traits.Adder); ok {
			return sized(l.Add(r))
		}
	case operators.Subtract:
		if l, ok := l.(traits.Subtractor); ok {
			return l.Subtract(r)
		}
	case operators.Multiply:
		if l, ok := l.(traits.Multiplier); ok {
			return l.Multiply(r)
		}
	case operators.Divide:
		if l, ok := l.(traits.Divider); ok {
			return l.Divide(r)
		}
	case operators.Modulo:
		if l, ok := l.(traits.Modder); ok {
			return l.Modulo(r)
		}
	}
	return types.MaybeNoSuchOverloadErr(l)
}

func hasDecimal(l, r ref.Val) bool {
	_, ok := l.(exact)
	_, ok2 := r.(exact)
	return ok || ok2
}

// maxSize bounds texts, in bytes, and lists that an assertion puts together.
const maxSize = 1 << 20

func sized(v ref.Val) ref.Val {
	long := false
	switch v := v.(type) {
	case types.String:
		long = len(v) > maxSize
	case types.Bytes:
		long = len(v) > maxSize
	case traits.Lister:
		n, ok := v.Size().(types.Int)
		long = ok && n > maxSize
	}
	if long {
		return types.NewErr("it is too much work for this output")
	}
	return v
}
