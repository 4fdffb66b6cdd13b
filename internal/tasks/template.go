package tasks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"
	"text/template/parse"
)

// MaxPromptBytes bounds each rendered prompt.
const MaxPromptBytes = 2 << 20

// ErrPromptTooLarge is returned by Render for a prompt beyond MaxPromptBytes.
var ErrPromptTooLarge = errors.New("the rendered prompt is too large")

// templateData is what a template sees as its dot.
type templateData struct {
	Input  any    // the job's input; numbers keep their digits
	Schema string // the output schema as compact JSON
}

func parseTemplate(name, source string) (*template.Template, error) {
	t, err := template.New(name).Option("missingkey=error").Funcs(functions).Parse(source)
	if err != nil {
		return nil, err
	}
	if err := checkRoots(t); err != nil {
		return nil, err
	}
	if err := restrict(t); err != nil {
		return nil, err
	}
	return t, nil
}

// checkRoots finds misspelt fields ({{.Inptu}}) at load, where text/template would find them at the first job.
func checkRoots(t *template.Template) error {
	var walk func(n parse.Node, dotIsRoot bool) error
	each := func(dotIsRoot bool, nodes ...parse.Node) error {
		for _, n := range nodes {
			if err := walk(n, dotIsRoot); err != nil {
				return err
			}
		}
		return nil
	}
	branch := func(b *parse.BranchNode, inside bool, dotIsRoot bool) error {
		if err := each(dotIsRoot, b.Pipe); err != nil {
			return err
		}
		if err := walk(b.List, inside); err != nil {
			return err
		}
		if b.ElseList == nil {
			return nil
		}
		return walk(b.ElseList, dotIsRoot)
	}
	root := func(n parse.Node, field string) error {
		if field == "Input" || field == "Schema" {
			return nil
		}
		place, _ := t.ErrorContext(n)
		return fmt.Errorf("template: %s: there is no .%s; templates see .Input and .Schema", place, field)
	}
	walk = func(n parse.Node, dotIsRoot bool) error {
		switch n := n.(type) {
		case *parse.ListNode:
			return each(dotIsRoot, n.Nodes...)
		case *parse.ActionNode:
			return walk(n.Pipe, dotIsRoot)
		case *parse.PipeNode:
			for _, c := range n.Cmds {
				if err := each(dotIsRoot, c.Args...); err != nil {
					return err
				}
			}
		case *parse.ChainNode:
			return walk(n.Node, dotIsRoot)
		case *parse.FieldNode:
			if dotIsRoot {
				return root(n, n.Ident[0])
			}
		case *parse.VariableNode:
			if n.Ident[0] == "$" && len(n.Ident) > 1 {
				return root(n, n.Ident[1])
			}
		case *parse.IfNode:
			return branch(&n.BranchNode, dotIsRoot, dotIsRoot)
		case *parse.WithNode:
			return branch(&n.BranchNode, false, dotIsRoot)
		case *parse.RangeNode:
			return branch(&n.BranchNode, false, dotIsRoot)
		case *parse.TemplateNode:
			if n.Pipe != nil {
				return walk(n.Pipe, dotIsRoot)
			}
		}
		return nil
	}
	return walk(t.Root, true) // a {{define}} gets its dot from its caller, so it is left to rendering
}

// Render fills the templates with a job's input, which must be valid JSON. It fails on a key that the input does not
// have and, with ErrPromptTooLarge, beyond MaxPromptBytes.
func (d *Definition) Render(input json.RawMessage) (Prompt, error) {
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber()
	data := templateData{Schema: string(d.OutputSchemaJSON)}
	if err := dec.Decode(&data.Input); err != nil {
		return Prompt{}, fmt.Errorf("task %s: the input is not JSON: %w", d.Name, err)
	}
	system, err := execute(d.system, data)
	if err != nil {
		return Prompt{}, fmt.Errorf("task %s: %w", d.Name, err)
	}
	user, err := execute(d.prompt, data)
	if err != nil {
		return Prompt{}, fmt.Errorf("task %s: %w", d.Name, err)
	}
	return Prompt{System: system, User: user}, nil
}

// Prompt is what a provider is asked.
type Prompt struct {
	System string
	User   string
}

func execute(t *template.Template, data templateData) (string, error) {
	w := boundedWriter{left: MaxPromptBytes}
	if err := t.Execute(&w, data); err != nil {
		return "", err
	}
	return w.b.String(), nil
}

type boundedWriter struct {
	b    strings.Builder
	left int
}

var _ io.Writer = (*boundedWriter)(nil)

func (w *boundedWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return 0, ErrPromptTooLarge
	}
	w.left -= len(p)
	return w.b.Write(p)
}
