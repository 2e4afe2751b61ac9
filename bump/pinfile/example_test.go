package pinfile_test

import (
	"fmt"

	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
)

func ExampleEdit() {
	src := []byte("# version: \"0\"\npins:\n  - arch: gfx1151\n    version: \"1\"   # kept\n  - arch: gfx942\n    version: \"2\"\n")
	set := map[string]string{"pins[arch=gfx942].version": "3"}
	res, err := pinfile.Edit("pins.yaml", src, set, pinfile.Options{})
	fmt.Printf("%s%v\n", res.Text, err)
	for _, c := range res.Changes {
		fmt.Printf("%s: %s from %s to %s\n", c.Place, c.Path, c.From, c.To)
	}
	_, err = pinfile.Edit("pins.yaml", src, map[string]string{"version": "3"}, pinfile.Options{})
	fmt.Println(err)
	// Output:
	// # version: "0"
	// pins:
	//   - arch: gfx1151
	//     version: "1"   # kept
	//   - arch: gfx942
	//     version: "3"
	// <nil>
	// 6:15: pins[1].version from 2 to 3
	// find version in pins.yaml: 2 bindings match, at 4:5 (pins[0].version), 6:5 (pins[1].version) (name one by its path, e.g. pins[0].version)
}

func ExampleURLs() {
	src := []byte("let version = \"10.2.0\"; in {\n  url = \"https://old.example.org/rocm-${version}.tar.gz\";\n}\n")
	urls, err := pinfile.URLs("pin.nix", src, pinfile.Options{})
	fmt.Println(urls[0], err)
	moved, err := urls[0].Rebase(src, "https://new.example.org/nightly")
	fmt.Printf("%s%v\n", moved, err)
	// Output:
	// https://old.example.org/rocm-10.2.0.tar.gz at 2:9 (url) <nil>
	// let version = "10.2.0"; in {
	//   url = "https://new.example.org/nightly/rocm-${version}.tar.gz";
	// }
	// <nil>
}

func ExampleEdit_nix() {
	src := []byte("{\n  # version = \"1\";\n  version = \"2\";\n}\n")
	out, err := pinfile.Edit("default.nix", src, map[string]string{"version": "3"}, pinfile.Options{})
	fmt.Printf("%s%v\n", out.Text, err)
	// Output:
	// {
	//   # version = "1";
	//   version = "3";
	// }
	// <nil>
}
