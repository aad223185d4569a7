package llmapp

import "runtime/debug"

// ModulePath is Weir's, by which build info names its version.
const ModulePath = "github.com/weirhq/weir"

// Version is that of Weir in this binary, "unknown" where the build does not tell.
func Version() string {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == ModulePath {
				version = m.Version
			}
		}
	}
	return version
}
