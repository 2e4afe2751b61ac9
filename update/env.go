package update

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
)

// overrideName is a variable that
// holds for all GPUs of a machine; with _N behind it, for that of KFD's node N
// alone (libhsakmt, from ROCm 6.2 on: ROCm/ROCT-Thunk-Interface pull request 104).
const overrideName = gfx.OverrideName

// env are the variables of an install: what is built in for its target, what
// this machine's GPUs need to run the code of a target that somebody has named in
// place of theirs, and over both what the install says.
func (o Options) env(in Install, res gfx.Resolution) map[string]string {
	env := map[string]string{}
	maps.Copy(env, o.GFX.Env(res.Target))
	builtin := env[overrideName]
	if _, asked := in.Env[overrideName]; !asked {
		if m, err := o.GFX.Detect(o.Sys); err == nil { // in a container there is often none to be seen
			delete(env, overrideName)
			maps.Copy(env, o.overrides(m.GPUs, builtin, res))
		}
	}
	maps.Copy(env, in.Env)
	if len(env) == 0 {
		return nil
	}
	return env
}

// overrides are the variables by which the GPUs of this machine are taken for
// what res has code for: the value built in for the ones of its target, and where
// none is served as it is, what makes others run that code. What would hold for
// a GPU that is to stay what it is names the nodes instead.
func (o Options) overrides(gpus []gfx.GPU, builtin string, res gfx.Resolution) map[string]string {
	native := slices.ContainsFunc(gpus, func(g gfx.GPU) bool { return o.GFX.Serves(g.Target, res) })
	byNode := map[string]string{}
	value := ""
	for _, g := range gpus {
		needs := ""
		switch {
		case g.Target == res.Target:
			needs = builtin
		case !native:
			needs = o.GFX.Substitute(g.Target, res)
		}
		if needs != "" {
			value = needs
			byNode[fmt.Sprintf("%s_%d", overrideName, g.Node)] = needs
			o.Log.Info("the environment files say what a GPU is to be taken for", "gpu", g.Target, "node", g.Node, overrideName, needs)
		}
	}
	if len(byNode) == len(gpus) {
		return map[string]string{overrideName: value} // of one target all values are the same
	}
	return byNode
}
