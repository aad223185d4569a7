package llmapp

import (
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

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

// Commit is that of the checkout that this binary was built in, "" where the build does
// not tell, or was of another module.
func Commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path != ModulePath {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

// buildInfo is 1, for joins with other metrics.
func buildInfo() prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_build_info", Help: "1, with what is running.",
		ConstLabels: prometheus.Labels{"version": Version(), "commit": Commit()},
	})
	info.Set(1)
	return info
}
