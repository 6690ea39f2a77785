package importer

import (
	"embed"
	"path"
	"strings"
)

//go:embed mappings/*.yaml
var mappings embed.FS

// ShippedMapping returns the mapping of that name which comes with Daybook.
func ShippedMapping(name string) (source []byte, ok bool) {
	source, err := mappings.ReadFile("mappings/" + name + ".yaml")
	return source, err == nil
}

// ShippedMappings are the names of the mappings that come with Daybook, sorted.
func ShippedMappings() []string {
	files, _ := mappings.ReadDir("mappings") // it is compiled in
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strings.TrimSuffix(f.Name(), path.Ext(f.Name()))
	}
	return names
}
