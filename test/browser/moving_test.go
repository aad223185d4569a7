package browser

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestMovingPicture makes the README's moving picture of `weir demo`, of less than 1 MB.
func TestMovingPicture(t *testing.T) {
	t.Parallel()
	if *shots == "" {
		t.Skip("run with -shots=<folder>")
	}
	w := quickstart(t)
	p := w.tab(t)
	p.do(chromedp.EmulateViewport(1120, 700))
	p.login(w.key)
	var scenes []image.Image
	for _, scene := range []struct{ address, script string }{
		{"?from=24h", "true"},
		{"?v=sessions&from=24h&sort=-total_cost", "true"},
		{"", `document.querySelector("main td a").click()`}, // the session that cost the most
		{"", `document.querySelector("main tbody tr:nth-child(3)").click()`},
		{"?v=models&from=24h", `[...document.querySelectorAll("h2")].find((h) => h.textContent.startsWith("Why")).scrollIntoView()`},
		{"?v=requests&from=24h&f=status%3Agte%3A400", "true"},
	} {
		if scene.address != "" {
			p.show(scene.address)
		}
		js[bool](p, "("+scene.script+", true)")
		p.settled()
		p.until(`!document.querySelector(".trace") || document.querySelector(".trace .tools")`) // the previews
		shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(bytes.NewReader(shot))
		if err != nil {
			t.Fatal(err)
		}
		scenes = append(scenes, picture)
	}
	picture, err := animate(scenes)
	if err != nil || len(picture) >= 1e6 {
		t.Fatalf("%v, %d bytes", err, len(picture))
	}
	if err := os.WriteFile("../../docs/weir.gif", picture, 0o600); err != nil {
		t.Fatal(err)
	}
}

// animate shows each scene for two seconds, over and over, in the 256 colors that the scenes
// have most.
func animate(scenes []image.Image) ([]byte, error) {
	count := make(map[color.Color]int)
	each := func(scene image.Image, do func(x, y int, c color.Color)) {
		for y := range scene.Bounds().Dy() {
			for x := range scene.Bounds().Dx() {
				do(x, y, color.RGBAModel.Convert(scene.At(x, y)))
			}
		}
	}
	for _, scene := range scenes {
		each(scene, func(_, _ int, c color.Color) { count[c]++ })
	}
	most := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return count[b] - count[a] })
	palette := color.Palette(most[:min(len(most), 256)])
	nearest := make(map[color.Color]uint8)
	for c := range count {
		nearest[c] = uint8(palette.Index(c))
	}
	var moving gif.GIF
	for _, scene := range scenes {
		frame := image.NewPaletted(scene.Bounds(), palette)
		each(scene, func(x, y int, c color.Color) { frame.SetColorIndex(x, y, nearest[c]) })
		moving.Image, moving.Delay = append(moving.Image, frame), append(moving.Delay, 200) // hundredths of a second
	}
	var out bytes.Buffer
	err := gif.EncodeAll(&out, &moving)
	return out.Bytes(), err
}
