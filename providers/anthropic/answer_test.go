package anthropic_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/anthropic"
	"github.com/docket-gateway/docket/providers/anthropic/anthropictest"
	"github.com/docket-gateway/docket/providers/conformance"
	"github.com/docket-gateway/docket/providers/exchange"
	"github.com/docket-gateway/docket/providers/providertest"
)

const (
	native = anthropic.StructuredNative
	tool   = anthropic.StructuredTool
)

// want is an outcome; output stands for Completed.
type want struct {
	output    string
	code      string
	retryable bool
	unknown   bool
	finish    string
}

func (w want) check(t *testing.T, out providers.Outcome) {
	t.Helper()
	switch {
	case w.code == "":
		require.Equal(t, providers.Completed, out.Kind, "%+v", out.Failure)
		require.Equal(t, w.output, string(out.Output))
	case w.unknown:
		require.Equal(t, providers.Unknown, out.Kind, "%+v", out.Failure)
	default:
		require.Equal(t, providers.Failed, out.Kind, "%+v", out.Failure)
	}
	if w.code != "" {
		require.Equal(t, w.code, out.Failure.Code, out.Failure.Message)
		require.Equal(t, w.retryable, out.Failure.Retryable)
		require.Nil(t, out.Output)
	}
	require.Equal(t, w.finish, out.FinishReason)
}

// Every stop_reason, in both ways.
func TestStopReasons(t *testing.T) {
	t.Parallel()
	fails := func(reason, code string) want { return want{code: code, finish: reason} }
	for reason, wants := range map[string]map[string]want{
		"end_turn":   {native: {output: "{}", finish: "end_turn"}, tool: {output: "{}", finish: "end_turn"}},
		"tool_use":   {native: fails("tool_use", providers.CodeRefused), tool: {output: "{}", finish: "tool_use"}},
		"max_tokens": {native: fails("max_tokens", providers.CodeTruncated), tool: fails("max_tokens", providers.CodeTruncated)},
		"model_context_window_exceeded": {native: fails("model_context_window_exceeded", providers.CodeTruncated),
			tool: fails("model_context_window_exceeded", providers.CodeTruncated)},
		"refusal":       {native: fails("refusal", providers.CodeRefused), tool: fails("refusal", providers.CodeRefused)},
		"pause_turn":    {native: fails("pause_turn", providers.CodeProviderError), tool: fails("pause_turn", providers.CodeProviderError)},
		"stop_sequence": {native: fails("stop_sequence", providers.CodeProviderError), tool: fails("stop_sequence", providers.CodeProviderError)},
		"tomorrow":      {native: fails("tomorrow", providers.CodeProviderError), tool: fails("tomorrow", providers.CodeProviderError)},
	} {
		for way, w := range wants {
			t.Run(reason+"/"+way, func(t *testing.T) {
				t.Parallel()
				out, _ := sent(t, adapter(way), nil, conformance.Request(), anthropictest.Ends("{}", reason))
				w.check(t, out)
				require.Equal(t, anthropictest.InputTokens, *out.Usage.InputTokens)
			})
		}
	}
}

// What the answer is put together from.
func TestAnswers(t *testing.T) {
	t.Parallel()
	text, use := anthropictest.Text, anthropictest.Use
	none := map[string]any{}
	thinking := map[string]any{"type": "thinking", "thinking": "hm", "signature": "c2ln"}
	for name, tc := range map[string]struct {
		way    string
		behave func(stop string, blocks ...map[string]any) providertest.Behaviour
		stop   string
		blocks []map[string]any
		want   want
	}{
		"Texts":           {native, anthropictest.Blocks, "end_turn", []map[string]any{text(`{"a":`), thinking, text(`1}`)}, want{output: `{"a":1}`, finish: "end_turn"}},
		"TextsInOnePiece": {native, anthropictest.Whole, "end_turn", []map[string]any{thinking, text(`{"a":`), text(`1}`)}, want{output: `{"a":1}`, finish: "end_turn"}},
		"ForeignTool":     {native, anthropictest.Blocks, "end_turn", []map[string]any{text("{}"), use("answer", none)}, want{code: providers.CodeRefused, finish: "end_turn"}},
		"WhiteSpace":      {native, anthropictest.Blocks, "end_turn", []map[string]any{text(" \n")}, want{code: providers.CodeRefused, finish: "end_turn"}},
		// An input without pieces is the one that the block began with.
		"EmptyInput":      {tool, anthropictest.Blocks, "tool_use", []map[string]any{use("answer", none)}, want{output: `{}`, finish: "tool_use"}},
		"InputInOnePiece": {tool, anthropictest.Whole, "tool_use", []map[string]any{use("answer", map[string]any{"a": 1.5})}, want{output: `{"a":1.5}`, finish: "tool_use"}},
		"TextBefore":      {tool, anthropictest.Blocks, "tool_use", []map[string]any{text("Here it is:"), use("answer", none)}, want{output: `{}`, finish: "tool_use"}},
		"TextInstead":     {tool, anthropictest.Blocks, "end_turn", []map[string]any{text("{}")}, want{code: providers.CodeRefused, finish: "end_turn"}},
		"OtherTool":       {tool, anthropictest.Blocks, "tool_use", []map[string]any{use("look_up", none)}, want{code: providers.CodeRefused, finish: "tool_use"}},
		"TwoAnswers":      {tool, anthropictest.Blocks, "tool_use", []map[string]any{use("answer", none), use("answer", none)}, want{code: providers.CodeMalformedAnswer, finish: "tool_use"}},
		"NumberAsText":    {native, anthropictest.Whole, "end_turn", []map[string]any{{"type": "text", "text": 5}}, want{code: providers.CodeMalformedAnswer}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _ := sent(t, adapter(tc.way), nil, conformance.Request(), tc.behave(tc.stop, tc.blocks...))
			tc.want.check(t, out)
		})
	}
	both(t, func(t *testing.T, a conformance.Adapter) {
		out, _ := sent(t, a, nil, conformance.Request(), anthropictest.Thinks(conformance.Output))
		require.Equal(t, conformance.Output, string(out.Output), "%+v", out.Failure) //nolint:testifylint // to the byte
	})
	out, _ := sent(t, adapter(tool), nil, conformance.Request(), anthropictest.CallsTwice())
	want{code: providers.CodeMalformedAnswer, finish: "tool_use"}.check(t, out)
}

// A tool's input is passed on to the byte, broken or not: pieces may end anywhere, also in the middle of an escape.
func TestToolInputIsNeverRepaired(t *testing.T) {
	t.Parallel()
	for _, pieces := range [][]string{
		{`{"a": "\ud8`, `3d\udda8",`, "\n", `"n":1.50e`, `1}`},
		{`{"a":`, `"cut`},
		{"```json\n{}", "\n```"},
	} {
		out, _ := sent(t, adapter(tool), nil, conformance.Request(), func(x *providertest.Exchange) {
			events(start, useBlock)(x)
			for _, p := range pieces {
				x.Data(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":` + quoted(t, p) + `}}`)
			}
			for _, e := range []string{blockEnd, deltaEvent("tool_use"), stop} {
				x.Data(e)
			}
		})
		want{output: strings.Join(pieces, ""), finish: "tool_use"}.check(t, out)
	}
}

// Events by hand, for streams that no provider should send.
const (
	start     = `{"type":"message_start","message":{"id":"msg_1","type":"message","usage":{"input_tokens":7,"cache_creation_input_tokens":3,"cache_read_input_tokens":1,"output_tokens":1}}}`
	block     = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	useBlock  = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"answer","input":{}}}`
	piece     = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"{}"}}`
	blockEnd  = `{"type":"content_block_stop","index":0}`
	stop      = `{"type":"message_stop"}`
	malformed = providers.CodeMalformedAnswer
)

func deltaEvent(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":` + `"` + reason + `"` + `},"usage":{"output_tokens":5}}`
}

func events(data ...string) providertest.Behaviour { return providertest.Events(data...) }

func quoted(t *testing.T, s string) string {
	t.Helper()
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch r {
		case '"', '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case '\n':
			b.WriteString(`\n`)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

func TestStreamsOutOfOrder(t *testing.T) {
	t.Parallel()
	end := deltaEvent("end_turn")
	for name, tc := range map[string]struct {
		events []string
		want   want
	}{
		"Good":             {[]string{start, block, piece, blockEnd, end, stop}, want{output: "{}", finish: "end_turn"}},
		"UnknownEvent":     {[]string{start, `{"type":"weather"}`, block, piece, blockEnd, end, stop}, want{output: "{}", finish: "end_turn"}},
		"UnknownPiece":     {[]string{start, block, piece, `{"type":"content_block_delta","index":0,"delta":{"type":"smell_delta","smell":"x"}}`, blockEnd, end, stop}, want{output: "{}", finish: "end_turn"}},
		"UnknownBlock":     {[]string{start, strings.Replace(block, `"text","text":""`, `"hologram"`, 1), blockEnd, strings.Replace(block, "0", "1", 1), strings.Replace(piece, "0", "1", 1), strings.Replace(blockEnd, "0", "1", 1), end, stop}, want{output: "{}", finish: "end_turn"}},
		"NoStart":          {[]string{block, piece, blockEnd, end, stop}, want{code: malformed}},
		"StopAlone":        {[]string{stop}, want{code: malformed}},
		"TwoStarts":        {[]string{start, start, block, piece, blockEnd, end, stop}, want{code: malformed}},
		"StartOfNothing":   {[]string{`{"type":"message_start","message":{}}`, block, piece, blockEnd, end, stop}, want{code: malformed}},
		"PieceOfNoBlock":   {[]string{start, piece, end, stop}, want{code: malformed}},
		"PieceAfterItsEnd": {[]string{start, block, piece, blockEnd, piece, end, stop}, want{code: malformed}},
		"PieceWithoutIts":  {[]string{start, block, strings.Replace(piece, `"index":0,`, "", 1), blockEnd, end, stop}, want{code: malformed}},
		"PieceOfAnother":   {[]string{start, block, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}`, blockEnd, end, stop}, want{code: malformed}},
		"NumberAsPiece":    {[]string{start, block, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":5}}`, blockEnd, end, stop}, want{code: malformed}},
		"PieceOfNoKind":    {[]string{start, block, `{"type":"content_block_delta","index":0,"delta":{"text":"{}"}}`, blockEnd, end, stop}, want{code: malformed}},
		"BlockTwice":       {[]string{start, block, piece, block, blockEnd, end, stop}, want{code: malformed}},
		"BlockLeftOut":     {[]string{start, strings.Replace(block, "0", "1", 1), strings.Replace(blockEnd, "0", "1", 1), end, stop}, want{code: malformed}},
		"BlockMisnumbered": {[]string{start, strings.Replace(block, "0", "1", 1), piece, blockEnd, end, stop}, want{code: malformed}},
		"BlockStaysOpen":   {[]string{start, block, piece, end, stop}, want{code: malformed}},
		"EndTwice":         {[]string{start, block, piece, blockEnd, blockEnd, end, stop}, want{code: malformed}},
		"NoReason":         {[]string{start, block, piece, blockEnd, stop}, want{code: malformed}},
		"ReasonIsNull":     {[]string{start, block, piece, blockEnd, strings.Replace(end, `"end_turn"`, "null", 1), stop}, want{code: malformed}},
		"NoKind":           {[]string{start, block, `{"index":0}`, piece, blockEnd, end, stop}, want{code: malformed}},
		"NotAnObject":      {[]string{start, block, `[]`, piece, blockEnd, end, stop}, want{code: malformed}},
		"LoneSurrogate":    {[]string{start, block, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ud83d"}}`, blockEnd, end, stop}, want{code: malformed}},
		"InvalidUTF8":      {[]string{start, block, "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\xff\"}}", blockEnd, end, stop}, want{code: malformed}},
		"NoStop":           {[]string{start, block, piece, blockEnd, end}, want{code: providers.CodeTruncatedStream, unknown: true}},
		"DamagedAndCut":    {[]string{start, `{"type":"content_bl`}, want{code: providers.CodeTruncatedStream, unknown: true}},
		"EmptyError":       {[]string{start, `{"type":"error"}`}, want{code: malformed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _ := sent(t, adapter(native), nil, conformance.Request(), events(tc.events...))
			tc.want.check(t, out)
		})
	}
}

// Every error type, as an answer and in a stream.
func TestErrors(t *testing.T) {
	t.Parallel()
	const low = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."
	const limit = "You have reached your specified API usage limits. You will regain access on 2027-01-01 at 00:00 UTC."
	for name, tc := range map[string]struct {
		status           int
		kind, words      string
		answer, inStream want
	}{
		"InvalidRequest": {400, "invalid_request_error", "no", want{code: providers.CodeBadRequest}, want{code: providers.CodeProviderError}},
		"Credit":         {400, "invalid_request_error", low, want{code: providers.CodeQuotaExceeded}, want{code: providers.CodeQuotaExceeded}},
		"UsageLimit":     {400, "invalid_request_error", limit, want{code: providers.CodeQuotaExceeded}, want{code: providers.CodeQuotaExceeded}},
		"Filter":         {400, "invalid_request_error", "Output blocked by content filtering policy", want{code: providers.CodeContentFilter}, want{code: providers.CodeContentFilter}},
		"Authentication": {401, "authentication_error", "no", want{code: providers.CodeUnauthorized}, want{code: providers.CodeUnauthorized}},
		"Billing":        {402, "billing_error", "no", want{code: providers.CodeQuotaExceeded}, want{code: providers.CodeQuotaExceeded}},
		"Permission":     {403, "permission_error", "no", want{code: providers.CodeUnauthorized}, want{code: providers.CodeUnauthorized}},
		"NotFound":       {404, "not_found_error", "no", want{code: providers.CodeBadRequest}, want{code: providers.CodeProviderError}},
		"TooLarge":       {413, "request_too_large", "no", want{code: providers.CodeBadRequest}, want{code: providers.CodeProviderError}},
		"RateLimit":      {429, "rate_limit_error", "no", want{code: providers.CodeRateLimited, retryable: true}, want{code: providers.CodeRateLimited, retryable: true}},
		"SpendingLimit":  {429, "rate_limit_error", limit, want{code: providers.CodeQuotaExceeded}, want{code: providers.CodeQuotaExceeded}},
		"Internal":       {500, "api_error", "no", want{code: providers.CodeProviderError, retryable: true}, want{code: providers.CodeProviderError, retryable: true}},
		"Timeout":        {504, "timeout_error", "no", want{code: providers.CodeGateway, unknown: true}, want{code: providers.CodeProviderError, retryable: true}},
		"Overloaded":     {529, "overloaded_error", "Overloaded", want{code: providers.CodeOverloaded, retryable: true}, want{code: providers.CodeOverloaded, retryable: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _ := sent(t, adapter(native), nil, conformance.Request(),
				providertest.Status(tc.status, "application/json", anthropictest.ErrorBody(tc.kind, tc.words)))
			tc.answer.check(t, out)
			require.Nil(t, out.Usage)
			require.NotContains(t, out.Failure.Message, tc.words+" ")
			out, _ = sent(t, adapter(native), nil, conformance.Request(), anthropictest.ErrorEvent(tc.kind, tc.words))
			tc.inStream.check(t, out)
			require.NotContains(t, out.Failure.Message, low)
			require.Equal(t, anthropictest.InputTokens, *out.Usage.InputTokens, "billed whatever becomes of it")
			require.Nil(t, out.Usage.OutputTokens, "what message_start tells of the output is not what is billed")
		})
	}
}

// An error that a box in the middle made up is nobody's word: the provider may be working.
func TestErrorsOfBoxesInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"error":{"type":"api_error","message":"no"}}`, `{"type":"error","error":"no"}`, `{"type":"error","error":{"type":5}}`, `{"message":"no"}`} {
		for _, status := range []int{500, 503, 529} {
			out, _ := sent(t, adapter(native), nil, conformance.Request(), providertest.Status(status, "application/json", body))
			want{code: providers.CodeGateway, unknown: true}.check(t, out)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	whole := func(usage string) string {
		return `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"{}"}],"stop_reason":"end_turn","usage":` + usage + `}`
	}
	n := func(i int) *int { return &i }
	for name, tc := range map[string]struct {
		behave providertest.Behaviour
		want   *providers.Usage
	}{
		"CachedIsInput":    {anthropictest.Says("{}"), &providers.Usage{InputTokens: n(11), CachedInputTokens: n(4), OutputTokens: n(providertest.Tokens("{}"))}},
		"LastWordCounts":   {events(start, block, piece, blockEnd, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5,"input_tokens":8}}`, stop), &providers.Usage{InputTokens: n(12), CachedInputTokens: n(1), OutputTokens: n(5)}},
		"CutBeforeItsEnd":  {events(start, block, piece), &providers.Usage{InputTokens: n(11), CachedInputTokens: n(1)}},
		"InOnePiece":       {providertest.Status(200, "application/json", whole(`{"input_tokens":7,"cache_creation_input_tokens":3,"cache_read_input_tokens":1,"output_tokens":5}`)), &providers.Usage{InputTokens: n(11), CachedInputTokens: n(1), OutputTokens: n(5)}},
		"TooManyToBelieve": {providertest.Status(200, "application/json", whole(`{"input_tokens":7,"cache_creation_input_tokens":9223372036854775807,"cache_read_input_tokens":1,"output_tokens":2147483648}`)), &providers.Usage{CachedInputTokens: n(1)}},
		"TooManyTogether":  {providertest.Status(200, "application/json", whole(`{"input_tokens":2147483647,"cache_read_input_tokens":1,"output_tokens":2147483647}`)), &providers.Usage{CachedInputTokens: n(1), OutputTokens: n(2147483647)}},
		"NullIsNotTold":    {providertest.Status(200, "application/json", whole(`{"input_tokens":null,"cache_read_input_tokens":null,"output_tokens":5}`)), &providers.Usage{OutputTokens: n(5)}},
		"NoNumbers":        {providertest.Status(200, "application/json", whole(`{"input_tokens":"7","output_tokens":-5}`)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _ := sent(t, adapter(native), nil, conformance.Request(), tc.behave)
			require.Equal(t, tc.want, out.Usage, "%+v", out)
		})
	}
}

// With connections that are used again nothing is sent again by itself.
func TestNothingIsSentAgainOnABrokenConnection(t *testing.T) {
	t.Parallel()
	server, url := providertest.StartOf(t, anthropictest.Messages())
	server.Enqueue(anthropictest.Whole("end_turn", anthropictest.Text("{}")), conformance.BreaksReused)
	cfg := adapter(native).Config.WithDefaults()
	cfg.BaseURL, cfg.APIKey = url, "k"
	p, err := anthropic.NewWithOptions(cfg, exchange.Options{ReuseConnections: true})
	require.NoError(t, err)
	defer p.Close()
	conformance.NothingIsSentAgain(t, p, server)
}
