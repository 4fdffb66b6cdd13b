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

// Parse rebuilds a definition from its stored Content. A database may have changed Content's white space or the order of
// its keys; anything else that would give another digest is an error.
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
	s := sources{
		file: doc.Task, inputSchema: doc.InputSchema, outputSchema: doc.OutputSchema,
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
	in, inJSON, err := compileSchema(path.Join(dir, FileInputSchema), s.inputSchema, f.Formats)
	failed(FileInputSchema, err)
	out, outJSON, err := compileSchema(path.Join(dir, FileOutputSchema), s.outputSchema, f.Formats)
	failed(FileOutputSchema, err)
	system, err := parseTemplate(FileSystem, s.system)
	failed(FileSystem, err)
	prompt, err := parseTemplate(FilePrompt, s.prompt)
	failed(FilePrompt, err)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}

	content, err := s.content(inJSON, outJSON)
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
		InputSchemaJSON:  inJSON,
		OutputSchemaJSON: outJSON,
		InputSchema:      in,
		OutputSchema:     out,
		system:           system,
		prompt:           prompt,
	}
	for i, t := range f.Fallbacks {
		d.Fallbacks[i] = string(t)
	}
	return d, nil
}

func (s sources) content(inJSON, outJSON json.RawMessage) ([]byte, error) {
	raw, err := json.Marshal(document{
		Format: contentFormat, Task: s.file, InputSchema: inJSON, OutputSchema: outJSON,
		System: s.system, Prompt: s.prompt,
	})
	if err != nil {
		return nil, err
	}
	return canonical.Canonicalize(raw)
}

func compileSchema(name string, raw []byte, formats text) (*schema.Schema, json.RawMessage, error) {
	canon, err := canonical.Canonicalize(raw)
	if err != nil {
		var syntax *canonical.SyntaxError
		if errors.As(err, &syntax) {
			return nil, nil, fmt.Errorf("at byte %d (%q): %w", syntax.Offset, syntax.Pointer, err)
		}
		var number *canonical.NumberError
		if errors.As(err, &number) {
			return nil, nil, fmt.Errorf("at %q: %w", number.Pointer, err)
		}
		return nil, nil, err
	}
	var options []schema.Option
	if formats == formatsAnnotate {
		options = append(options, schema.AnnotateFormats())
	}
	s, err := schema.Compile(name, canon, options...)
	if err != nil {
		return nil, nil, err
	}
	return s, canon, nil
}
