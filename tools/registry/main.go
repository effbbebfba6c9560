// The distribution registry with the one storage that tests use. Its own `main` brings those of three clouds as well,
// and their libraries take longer to compile than all the rest.
package main

import (
	"os"

	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
)

func main() {
	if registry.RootCmd.Execute() != nil {
		os.Exit(1)
	}
}
