// Judges CustomResourceDefinitions with the library of the oldest Kubernetes that Prewarm serves: whether their schemas
// are structural, and whether their CEL rules compile there and fit its cost budget.
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func main() {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	faults := 0
	for _, file := range os.Args[1:] {
		errors, err := judge(scheme, file)
		if err != nil {
			fmt.Printf("%s: %v\n", file, err)
			faults++
		}
		for _, fault := range errors {
			fmt.Printf("%s: %s\n", file, fault)
			faults++
		}
	}
	if faults > 0 {
		os.Exit(1)
	}
	fmt.Printf("%d definitions accepted\n", len(os.Args)-1)
}

func judge(scheme *runtime.Scheme, file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var given v1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &given); err != nil {
		return nil, err
	}
	scheme.Default(&given)
	var crd apiextensions.CustomResourceDefinition
	if err := scheme.Convert(&given, &crd, nil); err != nil {
		return nil, err
	}
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			crd.Status.StoredVersions = []string{version.Name}
		}
	}
	var faults []string
	for _, fault := range validation.ValidateCustomResourceDefinition(context.Background(), &crd) {
		faults = append(faults, fault.Error())
	}
	return faults, nil
}
