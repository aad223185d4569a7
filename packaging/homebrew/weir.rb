class Weir < Formula
  desc "LLM gateway and observability in one binary"
  homepage "https://github.com/weirhq/weir"
  url "https://github.com/weirhq/weir.git", tag: "v${VERSION}", revision: "${REVISION}"
  license "Apache-2.0"

  depends_on "go" => :build

  def install
    ENV["CGO_ENABLED"] = "1" # for SQLite
    system "go", "build", *std_go_args(ldflags: "-s -w", tags: "sqlite_omit_load_extension"), "./xcaddy/weir"
    system bin/"weir", "manpage", "--directory", man8
    generate_completions_from_executable bin/"weir", "completion"
  end

  test do
    system bin/"weir", "init"
    system bin/"weir", "validate", "--config", "Caddyfile"
  end
end
