//go:build browser

package browser_test

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// inFewColours writes a picture with 256 colours at most, the most frequent ones of those that the eye
// tells apart: a third of the bytes.
func inFewColours(t *testing.T, data []byte) []byte {
	t.Helper()
	all, err := png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	bounds := all.Bounds()
	count, alike := map[color.RGBA]int{}, map[color.RGBA]int{}
	best := map[color.RGBA]color.RGBA{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := color.RGBAModel.Convert(all.At(x, y)).(color.RGBA)
			sort := color.RGBA{c.R >> 4, c.G >> 4, c.B >> 4, 0}
			count[c]++
			alike[sort]++
			if count[c] > count[best[sort]] {
				best[sort] = c
			}
		}
	}
	sorts := slices.SortedFunc(maps.Keys(alike), func(a, b color.RGBA) int { return cmp.Compare(alike[b], alike[a]) })
	var colours color.Palette
	for _, sort := range sorts[:min(len(sorts), 128)] {
		colours = append(colours, best[sort])
	}
	// What is left goes to the colours that are most frequent of all.
	for _, c := range slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return cmp.Compare(count[b], count[a]) }) {
		if len(colours) < 256 && !slices.Contains(colours, color.Color(c)) {
			colours = append(colours, c)
		}
	}
	few := image.NewPaletted(bounds, colours)
	draw.Draw(few, bounds, all, bounds.Min, draw.Src)
	var b bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, few))
	return b.Bytes()
}
