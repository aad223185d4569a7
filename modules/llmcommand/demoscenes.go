package llmcommand

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"slices"
	"strings"
	"sync"
)

type demoModel struct {
	provider, name string
	pace           float64 // milliseconds a token of output
}

var demoModels = []demoModel{
	{"openai", "gpt-5-mini", 9}, {"anthropic", "claude-sonnet-4-5", 14}, {"openai", "gpt-4o-mini", 8},
	{"gemini", "gemini-2.5-flash", 5}, {"ollama", "qwen3-coder-internal", 22}, // nobody knows a price of the last
	{"openai", "gpt-5", 12},
}

// demoAgent is what a model is told, and what it does: each step is a turn, and the
// answer another.
type demoAgent struct {
	role   string // "" for the one whom the user asks
	prompt string
	steps  []demoStep
	answer string
	models []int // positions in demoModels
}

// demoStep is one call of a tool. %d stands for a number of the session.
type demoStep struct {
	tool              string // the last part of a path
	arguments, result string
	agent             *demoAgent // does the task; nil if result has the outcome
	task              string
	miss              string // why the provider's cache misses in this turn: "tools", "pause"
}

// demoScene is an agent that users ask.
type demoScene struct {
	name, team, question string
	picture              func() string // a PNG that comes with the question, nil if there is none
	demoAgent
}

// system returns the prompt, as long as prompts of real agents.
func (a *demoAgent) system() string {
	return a.prompt + "\n\n" + strings.Repeat("Work step by step. Prefer a tool to a guess, and say what you could not find out. ", 12)
}

func (a *demoAgent) tools() []any {
	var tools []any
	var names []string
	for _, step := range a.steps {
		if name := step.tool[strings.LastIndex(step.tool, "/")+1:]; !slices.Contains(names, name) {
			names, tools = append(names, name), append(tools, demoTool(name))
		}
	}
	return tools
}

func demoTool(name string) any {
	return map[string]any{"type": "function", "function": map[string]any{
		"name": name, "description": "Does " + strings.ReplaceAll(name, "_", " ") + " and answers what came of it.",
		"parameters": map[string]any{"type": "object", "properties": map[string]any{"query": map[string]string{"type": "string"}}},
	}}
}

// demoLoop is an agent that waits for what does not come.
var demoLoop = slices.Repeat([]demoStep{{tool: "build_status", arguments: `{"build":%d}`, result: `{"build":%d,"state":"queued"}`}}, 8)

var demoSearcher = &demoAgent{
	role: "searcher", prompt: "You search code and answer with files and lines.", models: []int{2, 3},
	steps: []demoStep{
		{tool: "grep", arguments: `{"pattern":"Refund("}`, result: "billing/refund.go:41\nbilling/refund_test.go:18\napi/orders.go:%d"},
		{tool: "read_file", arguments: `{"path":"billing/refund.go"}`, result: "func Refund(order Order) error { // line %d"},
		{tool: "read_file", arguments: `{"path":"api/orders.go"}`, result: "Error: no such file: api/orders.go"},
	},
	answer: "Three places call Refund: billing/refund.go:41, billing/refund_test.go:18 and api/orders.go:%d.",
}

var demoTester = &demoAgent{
	role: "tester", prompt: "You run tests and report the first failure.", models: []int{1, 2},
	steps: []demoStep{
		{tool: "run_tests", arguments: `{"package":"./billing"}`, result: "--- FAIL: TestRefund (0.02s): got 0, want %d"},
		{tool: "read_log", arguments: `{"lines":80}`, result: "panic: nil map in refund.go:%d"},
	},
	answer: "TestRefund fails: the map of rates is nil in refund.go:%d.",
}

var demoScenes = []demoScene{
	{
		name: "Support", team: "care", question: "Where is my order **%d**? It was sent on Monday, and the parcel looked like this.", picture: demoPicture,
		demoAgent: demoAgent{
			prompt: "You are the support agent of a shop. Look orders up before you answer.", models: []int{0, 1, 2, 3},
			steps: []demoStep{
				{tool: "find_order", arguments: `{"order":%d}`, result: `{"order":%d,"state":"in transit","carrier":"post"}`},
				{tool: "track_parcel", arguments: `{"parcel":"P-%d"}`, result: `{"eta":"tomorrow","events":3}`},
			},
			answer: "Order %d is **in transit** and arrives tomorrow. If it does not, you get a refund.\n\n| step | state |\n|---|---|\n| warehouse | done |\n| carrier | on its way |",
		},
	}, {
		name: "Code review", team: "platform", question: "Review pull request #%d.",
		demoAgent: demoAgent{
			prompt: "You review pull requests. Be brief, cite lines.", models: []int{0, 1, 4},
			steps: []demoStep{
				{tool: "read_diff", arguments: `{"pull":%d}`, result: `diff of %d: 214 lines in 6 files`},
				{tool: "run_tests", arguments: `{"pull":%d}`, result: `ok, 48 tests of %d`},
				{tool: "read_file", arguments: `{"path":"store/%d.go"}`, result: "func Open(ctx context.Context) // %d"},
			},
			answer: "Two findings in #%d:\n\n1. `ctx` is not passed on, so the call cannot be cancelled.\n2. The error of `Close` is lost.\n\n```go\ndefer func() { err = errors.Join(err, f.Close()) }()\n```",
		},
	}, {
		name: "Fix billing", team: "platform", question: "The refund test fails since build %d. Find out why, and mend it.",
		demoAgent: demoAgent{
			prompt: "You mend software. Hand searches and test runs to your agents.", models: []int{5, 1},
			steps: []demoStep{
				{tool: "read_log", arguments: `{"build":%d}`, result: "TestRefund failed in build %d"},
				{tool: "task", arguments: `{"agent":"searcher","prompt":"Find all callers of Refund in build %d, with files and lines."}`, agent: demoSearcher, task: "Find all callers of Refund in build %d, with files and lines."},
				{tool: "task", arguments: `{"agent":"tester","prompt":"Run the billing tests of build %d and report the first failure."}`, agent: demoTester, task: "Run the billing tests of build %d and report the first failure.", miss: "tools"},
				{tool: "edit_file", arguments: `{"path":"billing/refund.go","line":%d}`, result: "edited 1 line", miss: "pause"},
				{tool: "run_tests", arguments: `{"package":"./..."}`, result: "ok, 212 tests"},
			},
			answer: "The map of rates was nil. `billing/refund.go` makes it now, and all 212 tests pass.",
		},
	}, {
		name: "Deploy", team: "platform", question: "Deploy build %d when it is ready.",
		demoAgent: demoAgent{
			prompt: "You deploy builds.", models: []int{1, 0}, steps: demoLoop,
			answer: "Build %d is still queued. I stop waiting.",
		},
	}, {
		name: "Research", team: "growth", question: "Summarise what customers in segment %d say about pricing.",
		demoAgent: demoAgent{
			prompt: "You plan, search, and write a summary with sources.", models: []int{0, 3},
			steps: []demoStep{
				{tool: "plan", arguments: `{"segment":%d}`, result: `3 steps for %d`},
				{tool: "agents/web/search", arguments: `{"q":"pricing %d"}`, result: `12 results for %d`},
				{tool: "agents/crm/search", arguments: `{"segment":%d}`, result: `48 tickets of %d`},
				{tool: "agents/crm/read", arguments: `{"ticket":%d}`, result: `ticket %d: the invoice has no line items`},
			},
			answer: "Segment %d finds the plans *fair* and the invoices hard to read. Three of four sources agree.",
		},
	}, {
		name: "Search", team: "growth", question: "red shoes size %d",
		demoAgent: demoAgent{prompt: "Rewrite the query for a product search.", answer: "colour:red category:shoes size:%d", models: []int{2, 3, 3}},
	},
}

// demoCustomers is how many customers there are.
const demoCustomers = 121

var demoUsers = strings.Fields("ada grace linus margaret edsger barbara donald radia ken frances dennis katherine tony adele john hedy niklaus joan brian jean")

// demoPicture is a parcel. Other commands start without it.
var demoPicture = sync.OnceValue(func() string {
	picture := image.NewRGBA(image.Rect(0, 0, 240, 160))
	for x := range 240 {
		for y := range 160 {
			shade := color.RGBA{uint8(196 - y/4), uint8(150 - y/5), 92, 255}
			if x > 108 && x < 132 || y < 6 {
				shade = color.RGBA{226, 205, 160, 255} // the tape
			}
			picture.Set(x, y, shade)
		}
	}
	var b bytes.Buffer
	_ = png.Encode(&b, picture) // into memory
	return b.String()
})
