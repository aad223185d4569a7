package llmcommand

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/plugins/chat"
)

// demoTraffic makes up sessions of users with agents that call tools.
type demoTraffic struct{ *rand.Rand }

func newDemoTraffic(seed uint64) *demoTraffic { return &demoTraffic{rand.New(rand.NewPCG(seed, 0))} }

// demoTurn is one call of a model.
type demoTurn struct {
	at                    time.Time
	latency, first        time.Duration
	trace, spanID         string
	labels                map[string]string // control headers, without their prefix
	model                 demoModel
	messages              []chat.Message
	tools                 []any
	answer                chat.Message
	input, cached, output int // tokens
	status                int
}

// history are the turns from then to now: busy by day, growing, and with one
// incident.
func (t *demoTraffic) history(then, now time.Time) (turns []demoTurn) {
	hours := int(now.Sub(then).Hours())
	for hour := range hours {
		begin := now.Add(-time.Duration(hours-hour) * time.Hour)
		busy := 2 + 6*math.Max(0, math.Sin(float64(begin.Hour()-6)/24*2*math.Pi)) + 4*float64(hour)/float64(hours)
		if hours-hour <= 2 {
			busy *= 3 // so that the last minutes have sessions, too
		}
		overloaded := hours-hour >= 26 && hours-hour < 29
		if overloaded {
			busy = math.Max(busy, 8) // so that it is seen, at whatever time of the day
		}
		for range int(busy + t.Float64()*2) {
			at, known := begin.Add(time.Duration(t.Int64N(int64(time.Hour)))), 1-float64(hours-hour)/float64(hours+24)
			for _, turn := range t.session(at, known) {
				incident := overloaded && turn.model.provider == "anthropic"
				if incident {
					turn.latency *= 3
				}
				if incident && t.Float64() < 0.8 {
					turn.status = 529
				}
				if turn.at.Add(turn.latency).Before(now) {
					turns = append(turns, turn)
				}
			}
		}
	}
	slices.SortStableFunc(turns, func(a, b demoTurn) int { return a.at.Compare(b.at) })
	return turns
}

// session is one session that begins at a time. Users join one after the other:
// known is the share of users who have joined.
func (t *demoTraffic) session(at time.Time, known float64) []demoTurn {
	scene := &demoScenes[t.IntN(len(demoScenes))]
	number := strconv.Itoa(1000 + t.IntN(9000))
	share := t.Float64() // a few users ask most
	labels := map[string]string{
		"Job-Id":           demoJob,
		"User-Id":          demoUsers[int(share*share*math.Max(4, known*float64(len(demoUsers))))],
		"Property-Feature": strings.ToLower(strings.ReplaceAll(scene.name, " ", "-")), "Property-Team": scene.team,
		"Property-Customer":    fmt.Sprintf("customer-%03d", 1+t.IntN(demoCustomers-1)),
		"Property-Environment": []string{"production", "production", "production", "staging"}[t.IntN(4)],
	}
	size := 1
	if t.IntN(12) == 0 { // a customer who asks seldom, and much
		labels["Property-Customer"], size = "northwind-trading", 12
	}
	if len(scene.steps) > 0 {
		labels["Session-Id"], labels["Session-Name"] = fmt.Sprintf("%s-%08x", labels["Property-Feature"], t.Uint32()), scene.name
	}
	s := &demoSession{
		demoTraffic: t, labels: labels, trace: fmt.Sprintf("%016x%016x", t.Uint64(), t.Uint64()), at: at, size: size,
		fill: strings.NewReplacer("%d", number),
	}
	s.run(&scene.demoAgent, chat.Message{Role: "user", Content: s.question(scene)}, demoModels[scene.models[t.IntN(len(scene.models))]])
	return s.turns
}

// demoSession is a session while it is made.
type demoSession struct {
	*demoTraffic
	labels map[string]string
	trace  string
	at     time.Time // when the next turn begins
	size   int       // multiplies the tokens of the input
	fill   *strings.Replacer
	turns  []demoTurn
}

// question is what the user asks, with a picture in some of the scenes that have one.
func (s *demoSession) question(scene *demoScene) any {
	text := s.fill.Replace(scene.question)
	if scene.picture == nil || s.IntN(2) == 0 {
		return text
	}
	picture := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(scene.picture()))
	return []chat.Part{{Type: "text", Text: text}, {Type: "image_url", ImageURL: &chat.ImageURL{URL: picture}}}
}

// run plays an agent until its answer, and returns the answer.
func (s *demoSession) run(agent *demoAgent, task chat.Message, model demoModel) string {
	messages := []chat.Message{{Role: "system", Content: agent.system()}, task}
	tools := agent.tools()
	input := (1500 + s.IntN(2500)) * s.size
	before := 0 // tokens of the turn before
	steps := append(slices.Clone(agent.steps), demoStep{})
	for i := range steps {
		step := &steps[i]
		if i > 0 {
			switch step.miss { // makes the provider's cache miss
			case "tools":
				tools = append(slices.Clone(tools), demoTool("late_"+step.tool))
			case "pause":
				s.at = s.at.Add(7 * time.Minute)
			}
			if step.miss != "" || s.IntN(40) == 0 {
				before = 0
			}
		}
		turn := s.turn(agent, messages, tools, model)
		turn.input, turn.cached = input, before
		if last := i == len(steps)-1; last {
			turn.answer, turn.labels["Property-Step"] = chat.Message{Role: "assistant", Content: s.fill.Replace(agent.answer)}, "answer"
			s.add(turn)
			break
		}
		id, name := fmt.Sprintf("call_%08x", s.Uint32()), step.tool[strings.LastIndex(step.tool, "/")+1:]
		turn.answer = chat.Message{Role: "assistant"}
		turn.answer.ToolCalls = []chat.ToolCall{chat.CallFunction(id, name, s.fill.Replace(step.arguments))}
		turn.labels["Property-Step"], turn.labels["Session-Path"] = "tool", "/"+s.labels["Property-Feature"]+"/"+step.tool
		s.add(turn)
		result := s.fill.Replace(step.result)
		if step.agent != nil {
			task := chat.Message{Role: "user", Content: s.fill.Replace(step.task)}
			result = s.run(step.agent, task, demoModels[step.agent.models[s.IntN(len(step.agent.models))]])
		}
		messages = append(messages, turn.answer, chat.Message{Role: "tool", ToolCallID: id, Content: result})
		before, input = input, input+turn.output+(200+s.IntN(800))*s.size
	}
	return s.fill.Replace(agent.answer)
}

func (s *demoSession) turn(agent *demoAgent, messages []chat.Message, tools []any, model demoModel) demoTurn {
	turn := demoTurn{
		at: s.at, trace: s.trace, spanID: fmt.Sprintf("%016x", s.Uint64()|1), model: model, status: http.StatusOK,
		labels: maps.Clone(s.labels), messages: slices.Clone(messages), tools: tools, output: 30 + s.IntN(400),
	}
	if agent.role != "" {
		turn.labels["Property-Agent-Type"] = agent.role
	}
	if s.labels["Session-Id"] != "" {
		turn.labels["Session-Path"] = "/" + s.labels["Property-Feature"]
	}
	turn.first = time.Duration(180+s.ExpFloat64()*220) * time.Millisecond
	turn.latency = turn.first + time.Duration(float64(turn.output)*model.pace*(0.7+s.Float64()))*time.Millisecond
	return turn
}

// add appends a turn, after a refused one now and then.
func (s *demoSession) add(turn demoTurn) {
	if chance := s.Float64(); chance < 0.03 {
		refused := turn
		refused.status, refused.latency = http.StatusTooManyRequests, 90*time.Millisecond
		if chance < 0.006 {
			refused.status = http.StatusBadGateway
		}
		refused.spanID = fmt.Sprintf("%016x", s.Uint64()|1)
		s.turns = append(s.turns, refused)
		turn.at = turn.at.Add(2 * time.Second)
	}
	s.turns = append(s.turns, turn)
	s.at = turn.at.Add(turn.latency + time.Duration(s.IntN(2000))*time.Millisecond)
}

// score returns a random score around a mean, from 0 to 1.
func (t *demoTraffic) score(mean float64) float64 {
	return math.Round(100*math.Min(1, math.Max(0, mean+0.12*t.NormFloat64()))) / 100
}
