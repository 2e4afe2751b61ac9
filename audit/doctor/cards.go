package doctor

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
)

// card is a GPU of AMD's as PCI shows it, whatever its driver.
type card struct {
	pci     string // 0000:03:00.0
	id      string // 1002:744c
	driver  string // amdgpu, vfio-pci …; "" for none
	render  string // renderD128; "" for none
	vram    int64  // bytes; 0: unknown, as are the others
	visible int64  // of vram, what the CPU reaches
	gtt     int64
}

const pciDevices = "/sys/bus/pci/devices"

// findCards lists the devices of vendor 1002 that are display controllers
// (class 03) or processing accelerators (12), as the PCI code and ID assignment
// specification numbers them.
func findCards(s *System) []card {
	var cards []card
	for _, name := range s.list(pciDevices) {
		dir := path.Join(pciDevices, name)
		if s.line(dir+"/vendor") != "0x1002" {
			continue
		}
		class := s.line(dir + "/class")
		if !strings.HasPrefix(class, "0x03") && !strings.HasPrefix(class, "0x12") {
			continue
		}
		c := card{pci: name, id: "1002:" + strings.TrimPrefix(s.line(dir+"/device"), "0x")}
		if d := s.link(dir + "/driver"); d != "" {
			c.driver = path.Base(d)
		}
		for _, n := range s.list(dir + "/drm") {
			if strings.HasPrefix(n, "renderD") {
				c.render = n
			}
		}
		c.vram = s.number(dir + "/mem_info_vram_total")
		c.visible = s.number(dir + "/mem_info_vis_vram_total")
		c.gtt = s.number(dir + "/mem_info_gtt_total")
		cards = append(cards, c)
	}
	return cards
}

// number reads a file of one decimal number that is not negative; 0 otherwise.
func (s *System) number(name string) int64 {
	n, err := strconv.ParseInt(s.line(name), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// cardOf is the card that is a node of the KFD topology, nil if it is not seen.
func (x *exam) cardOf(g gfx.GPU) *card {
	p := map[string]int64{}
	for line := range strings.Lines(x.text(fmt.Sprintf("/sys/class/kfd/kfd/topology/nodes/%d/properties", g.Node))) {
		if f := strings.Fields(line); len(f) == 2 {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				p[f[0]] = n
			}
		}
	}
	// The location is bus, device and function (PCI_DEVID).
	at, ok := p["location_id"]
	if !ok {
		return nil
	}
	name := fmt.Sprintf("%04x:%02x:%02x.%x", p["domain"], at>>8&0xff, at>>3&0x1f, at&7)
	for i := range x.cards {
		if x.cards[i].pci == name {
			return &x.cards[i]
		}
	}
	return nil
}

// size writes bytes as people do.
func size(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", (n+1<<29)>>30)
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", (n+1<<19)>>20)
}
