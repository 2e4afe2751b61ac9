package gfx

import (
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/amd"
)

// Names as people, boxes, lspci and /proc/cpuinfo write them.
func TestProducts(t *testing.T) {
	for asked, want := range map[string]string{
		"RX 7900 XTX":                         "gfx1100",
		"rx7900xtx":                           "gfx1100",
		"RX7900XTX":                           "gfx1100",
		"amd radeon rx 7900 xtx":              "gfx1100",
		"AMDRadeonRX7900XTX":                  "gfx1100",
		"AMD Radeon(TM) RX 7900 XTX":          "gfx1100",
		"Radeon™ RX 7900 XTX Graphics":        "gfx1100",
		"7900 XTX":                            "gfx1100",
		"7900XT":                              "gfx1100",
		"RX-7900-GRE":                         "gfx1100",
		"Radeon PRO W7900":                    "gfx1100",
		"W7900":                               "gfx1100",
		"Radeon Pro W7800 48GB":               "gfx1100",
		"navi31":                              "gfx1100",
		"Navi 32":                             "gfx1101",
		"RX 7800 XT":                          "gfx1101",
		"V710":                                "gfx1101",
		"RX 7600":                             "gfx1102",
		"Radeon RX 7700S":                     "gfx1102",
		"Ryzen 5 7600":                        "gfx1036", // not the card of that number
		"Ryzen 7 7700":                        "gfx1036",
		"Ryzen 9 7900":                        "gfx1036",
		"AMD Radeon 780M Graphics":            "gfx1103",
		"hawk point":                          "gfx1103",
		"Strix Halo":                          "gfx1151",
		"strix-halo":                          "gfx1151",
		"Ryzen AI Max+ 395":                   "gfx1151",
		"AI Max 395":                          "gfx1151",
		"Max+ 395":                            "gfx1151",
		"Ryzen AI Max+ PRO 395":               "gfx1151",
		"Radeon 8060S":                        "gfx1151",
		"8060s":                               "gfx1151",
		"Ryzen AI 9 HX 370":                   "gfx1150",
		"Krackan Point":                       "gfx1152",
		"820M":                                "gfx1153",
		"RX 9070 XT 16GB":                     "gfx1201",
		"Radeon AI PRO R9700":                 "gfx1201",
		"R9700":                               "gfx1201",
		"RX 9060 XT":                          "gfx1200",
		"MI300X":                              "gfx942",
		"AMD Instinct MI300X":                 "gfx942",
		"MI-300A":                             "gfx942",
		"Instinct MI250X":                     "gfx90a",
		"MI50 32GB":                           "gfx906",
		"Radeon Pro VII":                      "gfx906",
		"Vega 20":                             "gfx906",
		"AMD Radeon Pro Vega 20":              "gfx904", // a card of another chip
		"RX Vega 64":                          "gfx900",
		"RX 5600M":                            "gfx1010",
		"Radeon Pro 5600M":                    "gfx1011",
		"Pro 5600M":                           "gfx1011",
		"BC-250":                              "gfx1013",
		"RX 6700 XT":                          "gfx1031",
		"RX 6700S":                            "gfx1032",
		"Steam Deck":                          "gfx1033",
		"Ryzen 7 PRO 6850U":                   "gfx1035",
		"Ryzen 7 5700G":                       "gfx90c",
		"AMD Ryzen 9 7950X 16-Core Processor": "gfx1036",
		"AMD Ryzen 7 7840U w/ Radeon 780M Graphics":               "gfx1103",
		"AMD RYZEN AI MAX+ 395 w/ Radeon 8060S":                   "gfx1151",
		"AMD Ryzen 7 5800U with Radeon Graphics":                  "gfx90c",
		"Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M]":     "gfx1100",
		"Vega 20 [Radeon Pro VII/Radeon Instinct MI50 32GB]":      "gfx906",
		"Advanced Micro Devices, Inc. [AMD/ATI] Navi 48 (rev c0)": "gfx1201",
		// What a vendor, a memory or a socket adds.
		"RX 7900 XTX 24 GB":                               "gfx1100",
		"RX 7900 GRE 16G":                                 "gfx1100",
		"RX 7900 XTX OC":                                  "gfx1100",
		"Sapphire Pulse RX 7900 XTX":                      "gfx1100",
		"XFX Speedster MERC 310 AMD Radeon RX 7900 XTX":   "gfx1100",
		"Sapphire PULSE Radeon RX 6800 S":                 "gfx1032",
		"W7900DS":                                         "gfx1100",
		"Radeon PRO W7900 Dual-Slot":                      "gfx1100",
		"MI300X OAM":                                      "gfx942",
		"AMD Instinct MI300X VF":                          "gfx942",
		"MI210 PCIe":                                      "gfx90a",
		"MI250X / MI250":                                  "gfx90a",
		"MI355":                                           "gfx950",
		"Steam Deck OLED 1TB":                             "gfx1033",
		"AMD Custom GPU 0405":                             "gfx1033",
		"RX 580 2048SP":                                   "gfx803",
		"AMD Radeon RX 6800/6800 XT / 6900 XT":            "gfx1030",
		"Vega 10 XL/XT [Radeon RX Vega 56/64]":            "gfx900",
		"Strix [Radeon 880M / 890M]":                      "gfx1150",
		"Aldebaran/MI200 [Instinct MI250X/MI250]":         "gfx90a",
		"Advanced Micro Devices, Inc. [AMD/ATI] Phoenix1": "gfx1103",
		// A processor with a GPU worth its name, without the Ryzen 7.
		"7840U":       "gfx1103",
		"8845HS":      "gfx1103",
		"5700G":       "gfx90c",
		"Ryzen 7840U": "gfx1103",
		"6900HX":      "gfx1035",
		"HX 370":      "gfx1150",
	} {
		if got, ok := known.Canonical(asked); !ok || got != want {
			t.Errorf("%q: %q, %v; want %s", asked, got, ok, want)
		}
	}
	for _, asked := range []string{"RTX 4090", "GeForce RTX 5090", "Arc B580", "5600M", "Radeon", "Radeon Graphics", "AMD Radeon Graphics",
		"Ryzen 9", "Vega 8", "Vega", "395", "RX", "Navi", "Ryzen AI", "16GB", "Max", "Z1", "RX 7900 XTX" + strings.Repeat(" ", 300), "Navi 31 [Radeon RX 9070 XT]", "",
		// The numbers of old cards, of which some are those of new ones.
		"Thames [Radeon HD 7500M/7600M Series]", "Whistler [Radeon HD 6630M/6650M/6750M/7670M/7690M]", "Madison [Mobility Radeon HD 5650/5750 / 6530M/6550M]",
		"Curacao XT / Trinidad XT [Radeon R7 370 / R9 270X/370X]", "Radeon RX Vega M GH", "Mobility Radeon HD 5600/5700",
		"Vega 20 RX 7900 XTX", "RX 7900 XTX / RX 9070", "RX 7900 XTX, RX 7600", "RX 6800 SX", "GeForce RTX 7900", "Radeon HD 7900",
		// Processors whose number is a card's, or that have no GPU worth its name.
		"Ryzen 7600", "Ryzen 7900", "AMD Ryzen 5700", "Ryzen 6800", "Ryzen 5600 with Radeon Graphics",
		"5600X", "7700X", "7900X", "Ryzen 7 5700X", "Ryzen 7 8700F", "/",
		// A name of several chips.
		"Gorgon Point", "Ryzen AI 7 450", "Vega 8", "AMD Radeon Vega 8 Graphics"} {
		if got, ok := known.Canonical(asked); ok {
			t.Errorf("%q is taken for %s", asked, got)
		}
	}
}

// Every product of the data is found as it is written there, and no two of
// them fold to one name.
func TestEveryProductIsFound(t *testing.T) {
	seen := map[string]string{}
	for name, want := range amd.Builtin().Products {
		if got, ok := known.Canonical(name); !ok || got != want {
			t.Errorf("%q: %q, %v; want %s", name, got, ok, want)
		}
		if got, ok := known.Canonical("AMD " + name + " Graphics"); !ok || got != want {
			t.Errorf("AMD %q: %q, %v; want %s", name, got, ok, want)
		}
		strict := foldings(name)[0]
		if other, twice := seen[strict]; twice && other != want {
			t.Errorf("%q is %s and %s", strict, other, want)
		}
		seen[strict] = want
	}
}

func TestATableOfOtherData(t *testing.T) {
	d := amd.Builtin()
	d.Products["Our Workstation"] = "gfx1201"
	d.Families["gfx126X-all"] = []string{"gfx1260", "gfx1261"}
	table := New(d)
	if got, ok := table.Canonical("our workstation"); !ok || got != "gfx1201" {
		t.Error(got)
	}
	if got := table.Targets("gfx126X-all"); len(got) != 2 {
		t.Error(got)
	}
	if _, ok := known.Canonical("our workstation"); ok {
		t.Error("the built-in table has changed")
	}
}

// Whatever is asked, the answer is a target of the data.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{"RX 7900 XTX", "Navi 21 [Radeon RX 6800/6800 XT / 6900 XT]", "a/b/c", "radeon rx", "7840u", "Ryzen 7 PRO", "24 g", "(tm)(r)", "7700(6700"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, asked string) {
		if got, ok := known.Canonical(asked); ok != (got != "") {
			t.Fatalf("%q: %q, %v", asked, got, ok)
		}
	})
}
