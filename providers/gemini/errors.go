package gemini

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/docket-gateway/docket/providers/exchange"
)

// readError reads the API's own error, {"error": google.rpc.Status}, or a list of one, as it comes where no stream of events was
// asked for. Its message is not passed on for what it says of quotas: each 429 tells that one "exceeded your current
// quota", whether it is over in a minute or in a month.
func readError(body []byte) (exchange.ErrorBody, bool) {
	var doc struct {
		Error *genai.APIError `json:"error"`
	}
	body = bytes.TrimSpace(body)
	if bytes.HasPrefix(body, []byte("[")) {
		var list []json.RawMessage
		if json.Unmarshal(body, &list) != nil || len(list) == 0 {
			return exchange.ErrorBody{}, false
		}
		body = list[0]
	}
	if json.Unmarshal(body, &doc) != nil || doc.Error == nil {
		return exchange.ErrorBody{}, false
	}
	said := doc.Error
	if said.Code == 0 && said.Status == "" && said.Message == "" {
		return exchange.ErrorBody{}, false
	}
	e := exchange.ErrorBody{Code: said.Status}
	if e.Code == "" {
		e.Code = strconv.Itoa(said.Code)
	}
	spent := spentMessage.MatchString(said.Message)
	for _, d := range said.Details {
		switch kind, _ := d["@type"].(string); strings.TrimPrefix(kind, "type.googleapis.com/google.rpc.") {
		case "ErrorInfo":
			e.Type, _ = d["reason"].(string)
		case "RetryInfo":
			delay, _ := d["retryDelay"].(string)
			e.RetryAfter, _ = time.ParseDuration(delay) // a protobuf duration, such as 20.04466179s; 0 if it is none
		case "QuotaFailure":
			spent = spent || daily(d["violations"])
		}
	}
	if spent && (said.Code == 429 || said.Status == "RESOURCE_EXHAUSTED") {
		// The delay that comes along is that of the next minute, and waiting for that does not help.
		e.Type, e.RetryAfter = "quota_exceeded", 0
	}
	return e, true
}

// spentMessage tells money that is used up, and models that the account's tier has no quota for.
var spentMessage = regexp.MustCompile(`(?i)prepayment credits|spending cap|\blimit: 0\b`)

// daily says whether one of the violations of a google.rpc.QuotaFailure is of a quota for a day, such as
// GenerateRequestsPerDayPerProjectPerModel-FreeTier, rather than for a minute.
func daily(violations any) bool {
	list, _ := violations.([]any)
	for _, v := range list {
		fields, _ := v.(map[string]any)
		id, _ := fields["quotaId"].(string)
		value, _ := fields["quotaValue"].(string)
		if strings.Contains(id, "PerDay") || value == "0" {
			return true
		}
	}
	return false
}
