package meaning

import (
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// decorate gives the operators below our meaning of them. cel-go asks the left operand alone, and its numbers know no decimals:
// 1.5 == decimal("1.5") would be false without a word. And it counts the steps of loops.
func (m *meter) decorate(loops map[int64]int64) interpreter.InterpretableDecoratorV2 {
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		if steps, ok := loops[i.ID()]; ok {
			return &condition{i, m, steps}, nil
		}
		call, ok := i.(interpreter.InterpretableCall)
		if !ok || len(call.Args()) != 2 {
			return i, nil
		}
		apply, ok := m.binary(call.Function())
		if !ok {
			return i, nil
		}
		return &operator{call, apply}, nil
	}
}

// condition is what a loop looks at before each of its rounds.
type condition struct {
	interpreter.InterpretableV2
	meter *meter
	steps int64
}

// Exec implements interpreter.InterpretableV2.
func (c *condition) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	c.meter.charge(c.steps)
	return c.InterpretableV2.Exec(frame)
}

// Eval implements interpreter.Interpretable.
func (c *condition) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// function is one that an expression calls, with one of its overloads.
type function struct {
	name     string
	overload *functions.Overload
}

// counted is the function with its cost paid for first.
func (m *meter) counted(f function) *functions.Overload {
	o := *f.overload
	if unary := o.Unary; unary != nil {
		o.Unary = func(v ref.Val) ref.Val {
			m.charge(m.cost(f.name, []ref.Val{v}))
			return sized(unary(v))
		}
	}
	if binary := o.Binary; binary != nil {
		o.Binary = func(l, r ref.Val) ref.Val {
			m.charge(m.cost(f.name, []ref.Val{l, r}))
			return sized(binary(l, r))
		}
	}
	if other := o.Function; other != nil {
		o.Function = func(args ...ref.Val) ref.Val {
			m.charge(m.cost(f.name, args))
			return sized(other(args...))
		}
	}
	return &o
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
func (m *meter) binary(function string) (apply func(l, r ref.Val) ref.Val, ok bool) {
	switch function {
	case operators.Equals:
		return func(l, r ref.Val) ref.Val { return types.Bool(m.equal(l, r)) }, true
	case operators.NotEquals:
		return func(l, r ref.Val) ref.Val { return types.Bool(!m.equal(l, r)) }, true
	case operators.In:
		return m.in, true
	case operators.Less:
		return m.compared(func(c types.Int) bool { return c < 0 }), true
	case operators.LessEquals:
		return m.compared(func(c types.Int) bool { return c <= 0 }), true
	case operators.Greater:
		return m.compared(func(c types.Int) bool { return c > 0 }), true
	case operators.GreaterEquals:
		return m.compared(func(c types.Int) bool { return c >= 0 }), true
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo:
		return func(l, r ref.Val) ref.Val { return m.calculate(function, l, r) }, true
	}
	return nil, false
}

// equal goes down into lists and maps itself, since a decimal may be in them, and counts what it looks at.
func (m *meter) equal(l, r ref.Val) bool {
	if hasDecimal(l, r) {
		m.charge(width(l) + width(r))
		if _, ok := r.(exact); ok {
			return r.Equal(l) == types.True
		}
		return l.Equal(r) == types.True
	}
	switch l := l.(type) {
	case traits.Lister:
		m.charge(1)
		r, ok := r.(traits.Lister)
		if !ok || l.Size() != r.Size() {
			return false
		}
		for i, j := l.Iterator(), r.Iterator(); i.HasNext() == types.True; {
			if !m.equal(i.Next(), j.Next()) {
				return false
			}
		}
		return true
	case traits.Mapper:
		m.charge(1)
		r, ok := r.(traits.Mapper)
		if !ok || l.Size() != r.Size() {
			return false
		}
		for it := l.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			m.charge(width(key))
			other, found := r.Find(key)
			if !found || !m.equal(l.Get(key), other) {
				return false
			}
		}
		return true
	}
	m.charge(min(width(l), width(r)))
	return types.Equal(l, r) == types.True
}

func (m *meter) in(l, r ref.Val) ref.Val {
	switch r := r.(type) {
	case traits.Lister:
		for it := r.Iterator(); it.HasNext() == types.True; {
			if m.equal(l, it.Next()) {
				return types.True
			}
		}
		return types.False
	case traits.Container:
		m.charge(width(l))
		return r.Contains(l)
	}
	return types.MaybeNoSuchOverloadErr(r)
}

func (m *meter) compared(holds func(types.Int) bool) func(l, r ref.Val) ref.Val {
	return func(l, r ref.Val) ref.Val {
		m.charge(width(l) + width(r))
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
func (m *meter) calculate(function string, l, r ref.Val) ref.Val {
	if !hasDecimal(l, r) {
		return m.arithmetic(function, l, r)
	}
	m.charge(width(l) + width(r))
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

func (m *meter) arithmetic(function string, l, r ref.Val) ref.Val {
	switch function {
	case operators.Add:
		return m.add(l, r)
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

func (m *meter) add(l, r ref.Val) ref.Val {
	m.charge(width(r))
	if _, ok := l.(traits.MutableLister); ok { // the list that a loop puts together
		return sized(l.(traits.Adder).Add(r))
	}
	m.charge(width(l))
	a, ok := l.(traits.Lister)
	b, ok2 := r.(traits.Lister)
	if ok && ok2 { // cel-go would look through all parts of the list to find one element
		return sized(types.NewRefValList(types.DefaultTypeAdapter, appendAll(appendAll(nil, a), b)))
	}
	if l, ok := l.(traits.Adder); ok {
		return sized(l.Add(r))
	}
	return types.MaybeNoSuchOverloadErr(l)
}

func appendAll(to []ref.Val, list traits.Lister) []ref.Val {
	for it := list.Iterator(); it.HasNext() == types.True; {
		to = append(to, it.Next())
	}
	return to
}

func hasDecimal(l, r ref.Val) bool {
	_, ok := l.(exact)
	_, ok2 := r.(exact)
	return ok || ok2
}

// maxSize bounds texts, in bytes, and lists that an assertion puts together.
const maxSize = 1 << 20

const tooLarge = "it is too much work for this output, a text or list of more than 1048576"

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
		return types.NewErr("%s", tooLarge)
	}
	return v
}
