package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/apd/v3"
)

type invoice struct {
	Number   string        `json:"invoice_number"`
	Date     string        `json:"issue_date"`
	Currency string        `json:"currency"`
	Seller   string        `json:"seller"`
	Lines    []invoiceLine `json:"lines"`
	Total    json.Number   `json:"total"`
}

type invoiceLine struct {
	Description string      `json:"description"`
	Quantity    json.Number `json:"quantity"`
	UnitPrice   json.Number `json:"unit_price"`
	Amount      json.Number `json:"amount"`
}

var (
	invoiceNumber = regexp.MustCompile(`(?im)^\s*(?:tax\s+)?(?:invoice|rechnung(?:s(?:nummer|nr))?|facture)\s*(?:number|no\b|nr\b|nummer|n[°º]|num[ée]ro|#)?\s*[.:#]*\s*(\S+)`)
	issueDate     = regexp.MustCompile(`(?im)^\s*(?:invoice date|date of issue|date|issued(?: on)?|rechnungsdatum|datum|date d[’']émission|ausgestellt(?: am)?)\s*:?\s*(.+)$`)
	sellerLabel   = regexp.MustCompile(`(?im)^\s*(?:from|seller|vendor|von|verkäufer|vendeur)\s*:\s*(\S.*)$`)
	totalLabel    = regexp.MustCompile(`(?im)^\s*(?:total(?: due)?|grand total|amount due|gesamt(?:betrag|summe)?|summe|montant total)\s*:\s*(\S.*)$`)
	timesLine     = regexp.MustCompile(`^\s*(-?[0-9][0-9.,]*)\s*[x×]\s+(.+?)\s*@\s*(\S+)(?:\s*=\s*(\S+))?\s*$`)
	currencyCode  = regexp.MustCompile(`\b(EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CZK|AUD|CAD|NZD|CNY|INR|BRL|ZAR)\b`)
)

// readInvoice reads an invoice's fields from labelled lines, and its positions from lines such as
// "Paper A4 | 2 | 4.50 | 9.00" or "2 x Paper A4 @ 4.50 = 9.00". An amount that is not quantity times price is computed;
// the total is the sum of the amounts. What is not found becomes "unknown", 1970-01-01 or XXX (no currency).
func readInvoice(text string) invoice {
	comma := decimalComma(text)
	inv := invoice{Number: "unknown", Date: "1970-01-01", Currency: currency(text), Seller: "unknown"}
	for _, m := range invoiceNumber.FindAllStringSubmatch(text, -1) {
		if n := strings.Trim(m[1], ".,;:"); strings.ContainsAny(n, "0123456789") {
			inv.Number = clip(n, 100)
			break
		}
	}
	if d, ok := findDate(text); ok {
		inv.Date = d
	}
	if m := sellerLabel.FindStringSubmatch(text); m != nil {
		inv.Seller = clip(m[1], 200)
	} else if first := clip(strings.SplitN(strings.TrimSpace(text), "\n", 2)[0], 200); first != "" {
		inv.Seller = first
	}

	sum := new(apd.Decimal)
	for line := range strings.Lines(text) {
		description, quantity, price, amount := position(strings.TrimSpace(line), comma)
		if quantity == nil || price == nil || description == "" || len(inv.Lines) == 200 {
			continue
		}
		if exact := multiply(quantity, price); amount == nil || !rounded(amount, exact) {
			amount = exact
		}
		sum = add(sum, amount)
		inv.Lines = append(inv.Lines, invoiceLine{clip(description, 500), exactly(quantity), exactly(price), exactly(amount)})
	}
	var stated *apd.Decimal
	if m := totalLabel.FindStringSubmatch(text); m != nil {
		stated = parseNumber(m[1], comma)
	}
	if len(inv.Lines) == 0 { // the schema wants one
		if stated == nil {
			stated = new(apd.Decimal)
		}
		sum = stated
		inv.Lines = []invoiceLine{{"Total", "1", exactly(stated), exactly(stated)}}
	}
	if stated != nil && stated.Cmp(sum) == 0 {
		sum = stated // with its number of digits
	}
	inv.Total = exactly(sum)
	return inv
}

// position reads one line; quantity is nil if it is none.
func position(line string, comma bool) (description string, quantity, price, amount *apd.Decimal) {
	if m := timesLine.FindStringSubmatch(line); m != nil {
		return m[2], parseNumber(m[1], comma), parseNumber(m[3], comma), parseNumber(m[4], comma)
	}
	cells := strings.Split(line, "|")
	if len(cells) < 4 {
		return "", nil, nil, nil
	}
	n := len(cells) // a description may hold pipes itself
	description = strings.TrimSpace(strings.Join(cells[:n-3], "|"))
	return description, parseNumber(cells[n-3], comma), parseNumber(cells[n-2], comma), parseNumber(cells[n-1], comma)
}

// exactly returns the number with the digits it was written or computed with.
func exactly(d *apd.Decimal) json.Number { return json.Number(d.Text('f')) }

func currency(text string) string {
	where := []string{text}
	if m := totalLabel.FindStringSubmatch(text); m != nil {
		where = []string{m[1], text}
	}
	for _, s := range where {
		if code := currencyCode.FindString(s); code != "" {
			return code
		}
		for symbol, code := range map[string]string{"€": "EUR", "£": "GBP", "$": "USD"} {
			if strings.Contains(s, symbol) {
				return code
			}
		}
	}
	return "XXX"
}

var (
	isoDate    = regexp.MustCompile(`\b([0-9]{4})-([0-9]{2})-([0-9]{2})\b`)
	dottedDate = regexp.MustCompile(`\b([0-9]{1,2})[./]([0-9]{1,2})[./]([0-9]{4})\b`)
	namedDate  = regexp.MustCompile(`(?i)\b([0-9]{1,2})\.?\s+(\p{L}+)\.?,?\s+([0-9]{4})\b`)
	usDate     = regexp.MustCompile(`(?i)\b(\p{L}+)\.?\s+([0-9]{1,2}),?\s+([0-9]{4})\b`)
)

// months by the beginnings of their names in English, German and French, longest first where one begins another.
var months = []struct {
	prefix string
	month  int
}{
	{"juin", 6}, {"juil", 7}, {"jan", 1}, {"fe", 2}, {"fé", 2}, {"mar", 3}, {"mär", 3}, {"apr", 4}, {"avr", 4},
	{"may", 5}, {"mai", 5}, {"jun", 6}, {"jul", 7}, {"au", 8}, {"ao", 8}, {"sep", 9}, {"oct", 10}, {"okt", 10}, {"nov", 11}, {"de", 12}, {"dé", 12},
}

// findDate returns the labelled date, else the first one.
func findDate(text string) (string, bool) {
	for _, m := range issueDate.FindAllStringSubmatch(text, -1) {
		if d, ok := readDate(m[1]); ok {
			return d, true
		}
	}
	return readDate(text)
}

func readDate(s string) (string, bool) {
	if m := isoDate.FindStringSubmatch(s); m != nil {
		return date(m[1], m[2], m[3])
	}
	if m := dottedDate.FindStringSubmatch(s); m != nil {
		return date(m[3], m[2], m[1])
	}
	if m := namedDate.FindStringSubmatch(s); m != nil {
		if d, ok := date(m[3], monthNumber(m[2]), m[1]); ok {
			return d, true
		}
	}
	if m := usDate.FindStringSubmatch(s); m != nil {
		return date(m[3], monthNumber(m[1]), m[2])
	}
	return "", false
}

func monthNumber(name string) string {
	name = strings.ToLower(name)
	for _, m := range months {
		if strings.HasPrefix(name, m.prefix) {
			return strconv.Itoa(m.month)
		}
	}
	return ""
}

func date(year, month, day string) (string, bool) {
	y, err1 := strconv.Atoi(year)
	m, err2 := strconv.Atoi(month)
	d, err3 := strconv.Atoi(day)
	if err1 != nil || err2 != nil || err3 != nil || time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).Day() != d || m < 1 || m > 12 {
		return "", false
	}
	return fmt.Sprintf("%04d-%02d-%02d", y, m, d), true
}
