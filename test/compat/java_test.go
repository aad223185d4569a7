package compat

import (
	"flag"
	"os/exec"
	"testing"
)

var withJava = flag.Bool("java", false, "try the clients for Java, which need a JDK and Maven")

// TestJavaClients has OpenAI's and Anthropic's clients for Java do the tasks of
// TestClientMatrix, but for an answer by a schema, with each kind of provider.
func TestJavaClients(t *testing.T) {
	if !*withJava {
		t.Skip("the clients for Java need a JDK and Maven: go test ./test/compat -java")
	}
	w := startKinds(t)
	libraries := t.TempDir()
	fetch := exec.CommandContext(t.Context(), "mvn", "-q", "-B", "-f", "java/pom.xml", "dependency:copy-dependencies", "-DoutputDirectory="+libraries)
	if out, err := fetch.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var trials []object
	for _, client := range []string{"openai-java responses", "openai-java chat", "anthropic-java"} {
		for _, k := range providerKinds {
			trials = append(trials, object{"client": client, "model": k.id(), "base_url": w.url})
		}
	}
	for _, o := range try(t, []string{"java", "-cp", libraries + "/*", "java/Matrix.java"}, trials) {
		if err := o.err(); err != nil {
			t.Errorf("%s with %s: %v", o.Client, o.Model, err)
		}
	}
}
