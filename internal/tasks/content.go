package tasks

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"time"

	"github.com/docket-gateway/docket/internal/canonical"
	"github.com/docket-gateway/docket/internal/schema"
)

// contentFormat is raised when the document below changes its shape.
const contentFormat = 1

// document is Content before it is brought into canonical form.
type document struct {
	Format       int             `json:"format"`
	Task         taskFile        `json:"task"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema"`
	System       string          `json:"system"`
	Prompt       string          `json:"prompt"`
}

// sources are a folder's files, read but not compiled.
type sources struct {
	file         taskFile
	inputSchema  []byte
	outputSchema []byte
	system       string
	prompt       string
}

// Parse rebuilds a definition from its Content or its Stored. White space, the order of keys and the way in which a number is
// written may be any; anything else that would give another digest is an error. The schemas stay as they are written there.
func Parse(content []byte) (*Definition, error) {
	canon, err := canonical.Canonicalize(content)
	if err != nil {
		return nil, fmt.Errorf("task version: %w", err)
	}
	var doc document
	dec := json.NewDecoder(bytes.NewReader(canon))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("task version: %w", err)
	}
	if doc.Format != contentFormat {
		return nil, fmt.Errorf("task version: format %d is not known, %d is", doc.Format, contentFormat)
	}
	var written struct {
		InputSchema  json.RawMessage `json:"input_schema"`
		OutputSchema json.RawMessage `json:"output_schema"`
	}
	if err := json.Unmarshal(content, &written); err != nil {
		return nil, fmt.Errorf("task version: %w", err) // not reachable: canonicalised above
	}
	s := sources{
		file: doc.Task, inputSchema: written.InputSchema, outputSchema: written.OutputSchema,
		system: doc.System, prompt: doc.Prompt,
	}
	d, err := s.compile("")
	if err != nil {
		return nil, fmt.Errorf("task version: %w", err)
	}
	if !bytes.Equal(d.Content, canon) {
		return nil, errors.New("task version: the content is not one that a task folder gives")
	}
	return d, nil
}

// compile checks everything and builds the definition. dir is for messages.
func (s sources) compile(dir string) (*Definition, error) {
	var errs []error
	failed := func(file string, err error) bool {
		if err == nil {
			return false
		}
		errs = append(errs, &Error{File: path.Join(dir, file), Err: err})
		return true
	}
	f := s.file
	failed(FileTask, f.check())
	in, err := compileSchema(path.Join(dir, FileInputSchema), s.inputSchema, f.Formats)
	failed(FileInputSchema, err)
	out, err := compileSchema(path.Join(dir, FileOutputSchema), s.outputSchema, f.Formats)
	failed(FileOutputSchema, err)
	system, err := parseTemplate(FileSystem, s.system)
	failed(FileSystem, err)
	prompt, err := parseTemplate(FilePrompt, s.prompt)
	failed(FilePrompt, err)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}

	stored, err := s.stored(in.written, out.written)
	if err != nil {
		return nil, &Error{File: path.Join(dir, FileTask), Err: err}
	}
	content, err := canonical.Canonicalize(stored)
	if err != nil {
		return nil, &Error{File: path.Join(dir, FileTask), Err: err}
	}
	sum := sha256.Sum256(content)
	temperature, _ := strconv.ParseFloat(string(f.Temperature), 64) // checked above
	d := &Definition{
		Name:            string(f.Name),
		Version:         string(f.Version),
		Digest:          "sha256:" + hex.EncodeToString(sum[:]),
		Content:         content,
		Stored:          stored,
		Temperature:     temperature,
		MaxOutputTokens: int(f.MaxOutputTokens),
		MaxInputBytes:   int(f.MaxInputBytes),
		Target:          string(f.Target),
		Fallbacks:       make([]string, len(f.Fallbacks)),
		RaceAllowed:     f.Race == raceAllowed,
		HedgeAfter:      time.Duration(f.HedgeAfter),
		Retry: RetryPolicy{
			Max: int(f.Retry.Max), Base: time.Duration(f.Retry.Base), Cap: time.Duration(f.Retry.Cap),
		},
		Contract: ContractPolicy{
			Runs: int(f.Contract.Runs), MaxAge: time.Duration(f.Contract.MaxAge),
			RequireRoundtrip: bool(f.Contract.RequireRoundtrip), Stability: f.Contract.stability(), Budget: f.Contract.budget(),
		},
		InputSchemaJSON:  in.written,
		OutputSchemaJSON: out.written,
		InputSchema:      in.schema,
		OutputSchema:     out.schema,
		system:           system,
		prompt:           prompt,
	}
	for i, t := range f.Fallbacks {
		d.Fallbacks[i] = string(t)
	}
	return d, nil
}

// stored is the document with the schemas as they are written. Its canonical form is the content.
func (s sources) stored(in, out json.RawMessage) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // the schemas stay as they are
	if err := enc.Encode(document{
		Format: contentFormat, Task: s.file, InputSchema: in, OutputSchema: out,
		System: s.system, Prompt: s.prompt,
	}); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

type compiled struct {
	schema  *schema.Schema
	written json.RawMessage // without white space, else as it was given: models write in the order of a schema's keys
}

func compileSchema(name string, raw []byte, formats text) (compiled, error) {
	canon, err := canonical.Canonicalize(raw)
	if err != nil {
		var syntax *canonical.SyntaxError
		if errors.As(err, &syntax) {
			return compiled{}, fmt.Errorf("at byte %d (%q): %w", syntax.Offset, syntax.Pointer, err)
		}
		var number *canonical.NumberError
		if errors.As(err, &number) {
			return compiled{}, fmt.Errorf("at %q: %w", number.Pointer, err)
		}
		return compiled{}, err
	}
	var options []schema.Option
	if formats == formatsAnnotate {
		options = append(options, schema.AnnotateFormats())
	}
	s, err := schema.Compile(name, canon, options...)
	if err != nil {
		return compiled{}, err
	}
	var written bytes.Buffer
	if err := json.Compact(&written, raw); err != nil {
		return compiled{}, err
	}
	return compiled{schema: s, written: written.Bytes()}, nil
}
