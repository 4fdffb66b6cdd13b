package demo

import (
	"regexp"
	"strings"
)

type triaged struct {
	Category string `json:"category"`
	Priority string `json:"priority"`
	Summary  string `json:"summary"`
}

// categories in the order that decides between equal scores. A keyword counts for every word that begins with it.
var categories = []struct {
	name  string
	words []string
}{
	{"billing", []string{"invoice", "charge", "refund", "bill", "payment", "paid", "card", "price", "subscription", "rechnung", "zahlung", "erstattung", "facture", "remboursement"}},
	{"account", []string{"login", "log-in", "password", "account", "locked", "sign-in", "signin", "username", "2fa", "konto", "passwort", "gesperrt", "compte"}},
	{"technical", []string{"error", "crash", "bug", "500", "api", "timeout", "outage", "down", "broken", "exception", "fail", "fehler", "absturz", "erreur"}},
	{"shipping", []string{"parcel", "deliver", "tracking", "shipment", "shipping", "shipped", "carrier", "courier", "package", "paket", "lieferung", "versand", "colis", "livraison"}},
}

var (
	quotedLine  = regexp.MustCompile(`(?m)^>.*$`)
	fenced      = regexp.MustCompile("(?s)```.*?(```|$)")
	quotedWords = regexp.MustCompile(`"[^"\n]*"`)
	wordStart   = regexp.MustCompile(`[\p{L}\p{N}][\p{L}\p{N}'’-]*`)
	sentenceEnd = regexp.MustCompile(`[.!?](\s|$)`)

	calm   = regexp.MustCompile(`\b(not urgent|no rush|no hurry|nicht dringend)\b`)
	urgent = regexp.MustCompile(`\b(urgent|urgently|asap|immediately|outage|emergency|dringend|production is down|(is|are) down|lose orders|lost money|losing money)\b`)
	high   = regexp.MustCompile(`(can ?not|can[’']t|unable to|nicht) (work|arbeiten|log ?in|sign in)|locked out|blocked from`)
	asking = regexp.MustCompile(`\b(how (do|can) (i|we)|question about|quick question|wondering|just curious|is it possible)\b`)
	thanks = regexp.MustCompile(`\b(thanks|thank you|danke|merci)\b`)
)

// triage sorts a support message by keywords. The subject counts twice. Quoted words, quoted lines and code are
// somebody else's and do not count.
func triage(subject, text string) triaged {
	own := func(s string) string {
		s = fenced.ReplaceAllString(s, " ")
		s = quotedLine.ReplaceAllString(s, " ")
		return strings.ToLower(quotedWords.ReplaceAllString(s, " "))
	}
	subjectOwn, textOwn := own(subject), own(text)
	best, category := 0, "other"
	for _, c := range categories {
		if n := 2*score(subjectOwn, c.words) + score(textOwn, c.words); n > best {
			best, category = n, c.name
		}
	}
	all := strings.Join(strings.Fields(subjectOwn+" . "+textOwn), " ")
	priority := "normal"
	switch {
	case calm.MatchString(all):
		priority = "low"
	case urgent.MatchString(all):
		priority = "urgent"
	case high.MatchString(all):
		priority = "high"
	case asking.MatchString(all), category == "other" && thanks.MatchString(all):
		priority = "low"
	}
	return triaged{category, priority, summarize(subject, text)}
}

func score(s string, keywords []string) int {
	n := 0
	for _, w := range wordStart.FindAllString(s, -1) {
		for _, k := range keywords {
			if strings.HasPrefix(w, k) {
				n++
				break
			}
		}
	}
	return n
}

// summarize returns the subject, else the text's first sentence that is more than a greeting.
func summarize(subject, text string) string {
	if s := clip(subject, 200); s != "" {
		return s
	}
	flat := strings.Join(strings.Fields(text), " ")
	for rest := flat; rest != ""; {
		end := len(rest)
		if loc := sentenceEnd.FindStringIndex(rest); loc != nil {
			end = loc[0] + 1
		}
		if s := rest[:end]; len(strings.Fields(s)) > 3 {
			return clip(s, 200)
		}
		rest = strings.TrimSpace(rest[end:])
	}
	if flat == "" {
		return "(empty message)"
	}
	return clip(flat, 200)
}
