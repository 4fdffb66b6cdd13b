// Package tracecontext carries one W3C trace (https://www.w3.org/TR/trace-context/) from the request that made a job to
// every provider request of its attempts, on any process. It records no spans: what happened is in the job's events.
//
// It imports nothing of this module.
package tracecontext

import (
	"context"
	"crypto/sha256"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const header = "traceparent"

// nothing is empty: the propagator speaks through contexts alone.
var nothing = context.Background()

// FromHeader returns the request's traceparent in the form of version 00, "" if it has none that is valid. A tracestate
// is not kept: it may be long, and is only of use to whoever wrote it.
func FromHeader(h http.Header) string {
	if values := h.Values(header); len(values) == 1 {
		return write(read(values[0]))
	}
	return ""
}

// TraceID is the trace that a job belongs to, 32 hexadecimal digits.
func TraceID(jobID, traceparent string) string { return parent(jobID, traceparent).TraceID().String() }

// OfAttempt returns the traceparent of an attempt's requests: the job's trace, in which the attempt is a span of its own.
// The span's id follows from the attempt's, so that a request that is sent again is the same span. A job without a
// traceparent has a trace whose id follows from the job's.
func OfAttempt(jobID, traceparent, attemptID string) string {
	hash := sha256.Sum256([]byte("span of " + attemptID))
	return write(parent(jobID, traceparent).WithSpanID(trace.SpanID(hash[:8])))
}

func parent(jobID, traceparent string) trace.SpanContext {
	if sc := read(traceparent); sc.IsValid() {
		return sc
	}
	hash := sha256.Sum256([]byte("trace of " + jobID))
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(hash[:16]), SpanID: trace.SpanID(hash[16:24]), TraceFlags: trace.FlagsSampled,
	})
}

func read(traceparent string) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(nothing, propagation.MapCarrier{header: traceparent})
	return trace.SpanContextFromContext(ctx)
}

func write(sc trace.SpanContext) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(nothing, sc), carrier)
	return carrier[header]
}
