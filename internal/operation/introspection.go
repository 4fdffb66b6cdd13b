package operation

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// rules of validation. Where the schema is not told, errors do not guess at names that a client may have meant.
func (e *Executor) rules() *rules.Rules {
	all := rules.NewDefaultRules()
	if !e.options.NoIntrospection {
		return all
	}
	all.ReplaceRule(rules.FieldsOnCorrectTypeRule.Name, rules.FieldsOnCorrectTypeRuleWithoutSuggestions.RuleFunc)
	all.ReplaceRule(rules.KnownArgumentNamesRule.Name, rules.KnownArgumentNamesRuleWithoutSuggestions.RuleFunc)
	all.ReplaceRule(rules.KnownTypeNamesRule.Name, rules.KnownTypeNamesRuleWithoutSuggestions.RuleFunc)
	all.ReplaceRule(rules.ScalarLeafsRule.Name, rules.ScalarLeafsRuleWithoutSuggestions.RuleFunc)
	all.ReplaceRule(rules.ValuesOfCorrectTypeRule.Name, rules.ValuesOfCorrectTypeRuleWithoutSuggestions.RuleFunc)
	return all
}

// introspects reports whether a valid document asks for the schema anywhere, whether it would be executed or not.
func introspects(doc *ast.QueryDocument) (found bool) {
	visit := func(f *ast.Field) { found = found || f.Name == "__schema" || f.Name == "__type" }
	for _, o := range doc.Operations {
		eachField(o.SelectionSet, visit)
	}
	for _, f := range doc.Fragments {
		eachField(f.SelectionSet, visit)
	}
	return found
}
