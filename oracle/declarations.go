package main

import (
	"encoding/json"
	"errors"
	"sort"

	"github.com/google/cel-go/checker"
)

type overload struct {
	ID     string   `json:"id"`
	Member bool     `json:"member,omitempty"`
	Args   []string `json:"args"`
	Result string   `json:"result"`
}

// declarations lists what the environment of an expression declares, overloads in the order the checker tries them.
func declarations(raw json.RawMessage) (any, error) {
	var request celRequest
	if err := json.Unmarshal(raw, &request); err != nil {
		return nil, err
	}
	request.Expression = "true"
	compiled := compile(request)
	if compiled.Error != nil {
		return nil, errors.New(compiled.Error.Detail)
	}
	functions := map[string][]overload{}
	for name, function := range compiled.Environment.Functions() {
		for _, declared := range function.OverloadDecls() {
			one := overload{
				ID: declared.ID(), Member: declared.IsMemberFunction(), Args: []string{},
				Result: checker.FormatCELType(declared.ResultType()),
			}
			for _, argument := range declared.ArgTypes() {
				one.Args = append(one.Args, checker.FormatCELType(argument))
			}
			functions[name] = append(functions[name], one)
		}
	}
	var macros, variables []string
	for _, macro := range compiled.Environment.Macros() {
		macros = append(macros, macro.MacroKey())
	}
	for _, variable := range compiled.Environment.Variables() {
		variables = append(variables, variable.Name()+": "+checker.FormatCELType(variable.Type()))
	}
	sort.Strings(macros)
	return map[string]any{"functions": functions, "macros": macros, "variables": variables}, nil
}
