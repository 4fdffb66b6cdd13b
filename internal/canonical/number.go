package canonical

import "strconv"

// Rules of a *NumberError.
const (
	ruleDigits   = "The number has more than 1,000 digits."
	ruleExponent = "The number's exponent is beyond 400 or -400."
)

// appendNumber appends the normal form of a number that is written by JSON's grammar. It returns the broken rule
// instead where the number is out of bounds.
func appendNumber(out, text []byte) ([]byte, string) {
	negative := false
	if text[0] == '-' {
		negative, text = true, text[1:]
	}
	mantissa, exponent := text, 0
	for i, c := range text {
		if c == 'e' || c == 'E' {
			mantissa = text[:i]
			exponent = readExponent(text[i+1:])
			break
		}
	}
	point := len(mantissa) // digits before the point
	digits := 0
	for i, c := range mantissa {
		if c == '.' {
			point = i
			continue
		}
		digits++
	}
	if digits > MaxDigits {
		return out, ruleDigits
	}
	if exponent > MaxExponent || exponent < -MaxExponent {
		return out, ruleExponent
	}

	var buffer [MaxDigits]byte
	all := buffer[:0]
	for _, c := range mantissa {
		if c != '.' {
			all = append(all, c)
		}
	}
	zeros := 0
	for zeros < len(all) && all[zeros] == '0' {
		zeros++
	}
	significant := all[zeros:]
	for len(significant) > 0 && significant[len(significant)-1] == '0' {
		significant = significant[:len(significant)-1]
	}
	if len(significant) == 0 {
		return append(out, '0'), "" // -0 is 0
	}
	if negative {
		out = append(out, '-')
	}
	// The value is 0.significant × 10^scale.
	return appendDecimal(out, significant, point-zeros+exponent), ""
}

// appendDecimal writes 0.digits × 10^scale; digits neither starts nor ends with a zero.
func appendDecimal(out, digits []byte, scale int) []byte {
	if -6 < scale && scale <= 21 {
		return appendPlain(out, digits, scale)
	}
	exponent := min(max(scale-1, -MaxExponent), MaxExponent)
	out = appendPlain(out, digits, scale-exponent)
	out = append(out, 'e')
	if exponent > 0 {
		out = append(out, '+')
	}
	return strconv.AppendInt(out, int64(exponent), 10)
}

// appendPlain writes 0.digits × 10^scale without an exponent.
func appendPlain(out, digits []byte, scale int) []byte {
	if scale <= 0 {
		out = append(out, "0."...)
		for ; scale < 0; scale++ {
			out = append(out, '0')
		}
		return append(out, digits...)
	}
	if scale < len(digits) {
		out = append(out, digits[:scale]...)
		out = append(out, '.')
		return append(out, digits[scale:]...)
	}
	out = append(out, digits...)
	for n := len(digits); n < scale; n++ {
		out = append(out, '0')
	}
	return out
}

// readExponent stops counting well beyond the bound, so that an exponent of any length cannot overflow.
func readExponent(text []byte) int {
	negative := false
	if text[0] == '+' || text[0] == '-' {
		negative, text = text[0] == '-', text[1:]
	}
	n := 0
	for _, c := range text {
		if n = n*10 + int(c-'0'); n > MaxExponent {
			n = MaxExponent + 1
			break
		}
	}
	if negative {
		return -n
	}
	return n
}
