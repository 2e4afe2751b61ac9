package environ

import "strings"

// nuHead defines the way back and a helper. A search path is a list in nu where
// a conversion says so, as for PATH, and else one string.
const nuHead = `def --env rocm_nightly_leave [] {
  mut gone = []
  mut back = {}
  for item in ($env.ROCM_NIGHTLY_UNDO? | default "" | split row "\t") {
    let part = ($item | split row -n 3 " ")
    if ($part | length) != 3 { continue }
    let name = $part.1
    let now = (if $name in $back { $back | get $name } else if $name in $env { $env | get $name } else { null })
    if $part.0 == "set" {
      if $now == $part.2 { $gone = ($gone | append $name) }
    } else if $now != null {
      let text = (($now | describe) == "string")
      let list = (if $text { $now | split row (char esep) } else { $now })
      let found = ($list | enumerate | where item == $part.2)
      if ($found | is-not-empty) {
        let at = (if ($part.0 | str starts-with "first") { $found | first } else { $found | last }).index
        let rest = ($list | drop nth $at)
        if ($rest | is-empty) and ($part.0 | str ends-with "-new") { $gone = ($gone | append $name) }
        $back = ($back | upsert $name (if $text { $rest | str join (char esep) } else { $rest }))
      }
    }
  }
  let hidden = $gone
  for name in ($back | columns | where $it not-in $hidden) { load-env {$name: ($back | get $name)} }
  for name in $hidden { hide-env -i $name }
  hide-env -i ROCM_NIGHTLY_ENV
  hide-env -i ROCM_NIGHTLY_UNDO
}
def --env _rocm_nightly_enter [prefix: string, scalars: list, lists: list] {
  let again = ($env.ROCM_NIGHTLY_ENV? == $prefix)
  if not $again { rocm_nightly_leave }
  mut undo = ($env.ROCM_NIGHTLY_UNDO? | default "" | split row "\t" | where $it != "")
  for v in $scalars {
    if not ($v.0 in $env) {
      load-env {$v.0: $v.1}
      $undo = ($undo | append $"set ($v.0) ($v.1)")
    }
  }
  mut fresh = []
  for v in $lists {
    let now = (if $v.0 in $env { $env | get $v.0 } else { null })
    if $now == null { $fresh = ($fresh | append $v.0) }
    let text = ($now == null or ($now | describe) == "string")
    let list = (if $text { $now | default "" | split row (char esep) } else { $now })
    let list = (if $list == [""] { [] } else { $list })
    let there = ($v.1 in $list)
    if not ($there and ($v.2 == "last" or $again or $list.0? == $v.1)) {
      let list = (if $v.2 == "first" { $list | prepend $v.1 } else { $list | append $v.1 })
      if $text and $v.0 != "PATH" { load-env {$v.0: ($list | str join (char esep))} } else { load-env {$v.0: $list} }
      let kind = (if $v.0 in $fresh { $"($v.2)-new" } else { $v.2 })
      $undo = ($undo | append $"($kind) ($v.0) ($v.1)")
    }
  }
  load-env {ROCM_NIGHTLY_ENV: $prefix, ROCM_NIGHTLY_UNDO: ($undo | uniq | str join "\t")}
}
`

// nu is the environment for Nushell.
func (e *Environment) nu() string {
	var b strings.Builder
	b.WriteString("# " + e.About + ": source this file in nu.\n# rocm_nightly_leave takes everything back.\n" + nuHead)
	b.WriteString("_rocm_nightly_enter " + quoteNu(e.Prefix) + " [\n")
	for _, v := range e.Set {
		b.WriteString("  [" + quoteNu(v.Name) + " " + quoteNu(v.Value) + "]\n")
	}
	b.WriteString("] [\n")
	for _, s := range e.Lists {
		b.WriteString("  [" + quoteNu(s.Name) + " " + quoteNu(s.Dir) + " " + quoteNu(s.end()) + "]\n")
	}
	b.WriteString("]\n")
	return b.String()
}
