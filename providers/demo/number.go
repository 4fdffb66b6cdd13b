package demo

import (
	"regexp"
	"strings"

	"github.com/cockroachdb/apd/v3"
)

// Decimals are apd's: amounts of money never go through a double, and 9.00 stays 9.00.

var number = regexp.MustCompile(`[-−(]?\s?[$€£]?\s?[0-9][0-9.,'’]*`)

// decimalComma says whether a text writes 1.234,50 rather than 1,234.50.
func decimalComma(text string) bool {
	return commaCents.MatchString(text) && !pointCents.MatchString(text)
}

var (
	commaCents = regexp.MustCompile(`[0-9],[0-9]{1,2}(\D|$)`)
	pointCents = regexp.MustCompile(`[0-9]\.[0-9]{2}([^0-9.]|$)`)
)

// parseNumber returns the first number in s, nil if there is none. A bracket or either minus makes it negative.
func parseNumber(s string, comma bool) *apd.Decimal {
	found := number.FindString(s)
	if found == "" {
		return nil
	}
	negative := strings.ContainsAny(found[:min(4, len(found))], "-−(")
	digits := strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9':
			return r
		case r == ',' && comma, r == '.' && !comma:
			return '.'
		default:
			return -1
		}
	}, found)
	digits = strings.TrimRight(digits, ".")
	if len(digits) > 40 {
		return nil
	}
	d, _, err := apd.NewFromString(digits)
	if err != nil {
		return nil
	}
	d.Negative = negative && !d.IsZero()
	return d
}

func multiply(a, b *apd.Decimal) *apd.Decimal {
	d := new(apd.Decimal)
	if _, err := apd.BaseContext.Mul(d, a, b); err != nil {
		return new(apd.Decimal)
	}
	return d
}

func add(a, b *apd.Decimal) *apd.Decimal {
	d := new(apd.Decimal)
	if _, err := apd.BaseContext.Add(d, a, b); err != nil {
		return new(apd.Decimal)
	}
	return d
}

// rounded says whether a is b rounded to cents.
func rounded(a, b *apd.Decimal) bool {
	d := new(apd.Decimal)
	if _, err := apd.BaseContext.Sub(d, a, b); err != nil {
		return false
	}
	d.Abs(d)
	return d.Cmp(apd.New(5, -3)) <= 0
}
