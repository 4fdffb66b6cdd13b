package contracts

import (
	"encoding/json"
	"slices"

	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/canonical"
	"github.com/docket-gateway/docket/internal/tasks"
)

// Basis is what a result of the suite at the endpoint depends on.
func (s Suite) Basis(ep Endpoint) (report.Basis, error) {
	cases, err := s.CasesDigest(ep.Target.ID)
	if err != nil {
		return report.Basis{}, err
	}
	parts := report.Parts{}
	taskParts(parts, s.Task)
	if err := s.caseParts(parts, ep.Target.ID); err != nil {
		return report.Basis{}, err
	}
	providerParts(parts, ep.ConfigParts)
	return report.Basis{
		TaskVersion: s.Task.Digest, CasesDigest: cases, ConfigDigest: ep.ConfigDigest, ChecksVersion: report.ChecksVersion, Parts: parts,
	}, nil
}

// files are shown by a digest even if they are short: a system prompt is nothing for a report.
var files = []string{tasks.FileInputSchema, tasks.FileOutputSchema, tasks.FileSystem, tasks.FilePrompt}

func taskParts(parts report.Parts, d *tasks.Definition) {
	for name, value := range d.Parts() {
		if slices.Contains(files, name) {
			parts.Hide(report.PartTask+name, value)
			continue
		}
		parts.Show(report.PartTask+name, value)
	}
}

func providerParts(parts report.Parts, config map[string]json.RawMessage) {
	for name, value := range config {
		if name == "base_url" { // names inside of a company's network
			parts.Hide(report.PartProvider+name, value)
			continue
		}
		parts.Show(report.PartProvider+name, value)
	}
}

// caseParts are of the cases and of what is recorded for them at the target, each under its file's name.
func (s Suite) caseParts(parts report.Parts, target string) error {
	hide := func(name string, v any) error {
		raw, err := json.Marshal(v)
		if err == nil {
			raw, err = canonical.Canonicalize(raw)
		}
		if err == nil {
			parts.Hide(name, raw)
		}
		return err
	}
	for _, c := range s.Cases {
		if err := hide(report.PartCase+c.Name, c.written); err != nil {
			return err
		}
		if c.Goldens.Shared != nil {
			if err := hide(goldenPart(SharedGoldenFile(c.Name)), c.Goldens.Shared); err != nil {
				return err
			}
		}
		t := c.Goldens.Targets[target]
		if t == nil {
			continue
		}
		if t.Values != nil {
			if err := hide(goldenPart(TargetGoldenFile(c.Name, target)), t.Values); err != nil {
				return err
			}
		}
		if t.Prompt != nil {
			parts.Hide(goldenPart(PromptGoldenFile(c.Name, target)), []byte(*t.Prompt))
		}
	}
	return nil
}

func goldenPart(file string) string { return report.PartGolden + file[len(casesFolder)+1:] }
