// Command schemas writes the JSON Schemas of the kinds that the chart renders, for kubeconform: those of Kubernetes from its OpenAPI
// document, those of the Prometheus operator from its CustomResourceDefinitions.
//
//	schemas OUT KUBERNETES OPERATOR
//
// The arguments are the folder to write, and those of the modules k8s.io/kubernetes and
// github.com/prometheus-operator/prometheus-operator.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// kinds are those of Kubernetes that the chart renders. kubeconform fails on one for which there is no schema.
var kinds = []string{"ConfigMap", "Deployment", "Ingress", "Job", "NetworkPolicy", "PodDisruptionBudget", "Service"}

// crds are those of the Prometheus operator.
var crds = []string{"servicemonitors", "prometheusrules"}

func main() {
	if len(os.Args) != 4 {
		fail("usage: schemas OUT KUBERNETES OPERATOR")
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fail(err.Error())
	}
}

func fail(message string) {
	_, _ = fmt.Fprintln(os.Stderr, "schemas: "+message)
	os.Exit(1)
}

type kind struct{ Group, Version, Kind string }

// file is the name by which kubeconform asks for a kind's schema: {{.ResourceKind}}{{.KindSuffix}}.json.
func (k kind) file() string {
	name := strings.ToLower(k.Kind)
	if group, _, _ := strings.Cut(k.Group, "."); group != "" {
		name += "-" + group
	}
	return name + "-" + k.Version + ".json"
}

func write(out, kubernetes, operator string) error {
	if err := os.MkdirAll(out, 0o750); err != nil {
		return err
	}
	if err := writeKubernetes(out, filepath.Join(kubernetes, "api/openapi-spec/swagger.json")); err != nil {
		return err
	}
	for _, crd := range crds {
		path := filepath.Join(operator, "example/prometheus-operator-crd/monitoring.coreos.com_"+crd+".yaml")
		if err := writeCRD(out, path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func writeKubernetes(out, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var document struct{ Definitions map[string]map[string]any }
	if err := json.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	definitions := map[string]any{}
	for name, definition := range document.Definitions {
		switch {
		case strings.HasSuffix(name, ".IntOrString"):
			definition["type"] = []string{"string", "integer"}
		case strings.HasSuffix(name, ".Quantity"):
			definition["type"] = []string{"string", "number"}
		}
		strict(definition)
		definitions[name] = definition
	}
	wanted := map[string]bool{}
	for _, kind := range kinds {
		wanted[kind] = true
	}
	for name, definition := range document.Definitions {
		for _, k := range kindsOf(definition) {
			if !wanted[k.Kind] {
				continue
			}
			schema := map[string]any{
				"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/" + name, "definitions": definitions,
			}
			if err := writeSchema(out, k, schema); err != nil {
				return err
			}
		}
	}
	return nil
}

// kindsOf reads the extension that says which kind a definition is.
func kindsOf(definition map[string]any) []kind {
	list, _ := definition["x-kubernetes-group-version-kind"].([]any)
	all := make([]kind, 0, len(list))
	for _, one := range list {
		if k, ok := one.(map[string]any); ok {
			group, _ := k["group"].(string)
			version, _ := k["version"].(string)
			name, _ := k["kind"].(string)
			all = append(all, kind{group, version, name})
		}
	}
	return all
}

func writeCRD(out, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var crd struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		strict(version.Schema.OpenAPIV3Schema)
		k := kind{crd.Spec.Group, version.Name, crd.Spec.Names.Kind}
		if err := writeSchema(out, k, version.Schema.OpenAPIV3Schema); err != nil {
			return err
		}
	}
	return nil
}

func writeSchema(out string, k kind, schema map[string]any) error {
	text, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, k.file()), text, 0o600)
}

// strict refuses fields that the schema does not know, in it and in all below it.
func strict(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if _, ok := s["properties"].(map[string]any); ok {
			if _, open := s["additionalProperties"]; !open && s["x-kubernetes-preserve-unknown-fields"] != true {
				s["additionalProperties"] = false
			}
		}
		for _, below := range s {
			strict(below)
		}
	case []any:
		for _, below := range s {
			strict(below)
		}
	}
}
